// tokenizer.json, read and written.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/json.h"
#include "data/byte_alphabet.h"
#include "data/tokenizer.h"

namespace gruca::data {
namespace {

using Ids = std::unordered_map<std::string, std::int32_t>;

[[noreturn]] void refuse(std::string_view what) {
    throw Error(ErrorCode::invalid_argument, fmt::format("tokenizer.json: {}", what));
}

void require_absent(const Json& json, std::string_view where, std::string_view member) {
    const Json* value = json.find(member);
    if (value == nullptr || (value->is_string() && value->as_string().empty())) return;
    refuse(fmt::format("{}{} is not supported: {}", where, member, value->dump().substr(0, 200)));
}

void require_false(const Json& json, std::string_view where, std::string_view member) {
    if (json.get_bool(member)) refuse(fmt::format("{}{} is not supported", where, member));
}

void require_byte_level(const Json& json, std::string_view member, bool may_be_absent) {
    const Json* part = json.find(member);
    if (part == nullptr && may_be_absent) return;
    const std::string type = part == nullptr ? "null" : part->get_string("type", "no type");
    if (type != "ByteLevel") {
        refuse(fmt::format("{} of another type than ByteLevel is not supported: {}", member, type));
    }
}

std::int32_t checked_id(std::int64_t id, std::string_view token) {
    if (id < 0 || id >= kVocabularyMax) {
        refuse(fmt::format("the id of a token is not in 0..{}: {} of {}", kVocabularyMax - 1, id,
                           token));
    }
    return static_cast<std::int32_t>(id);
}

void read_added_tokens(const Json& json, TokenizerParts& parts) {
    const Json* tokens = json.find("added_tokens");
    if (tokens == nullptr) return;
    for (const Json& token : tokens->as_array()) {
        const std::string& content = token.at("content").as_string();
        const std::string where = fmt::format("added token {}: ", content);
        for (const char* member : {"single_word", "lstrip", "rstrip"}) {
            require_false(token, where, member);
        }
        if (!token.get_bool("special")) refuse(where + "one that is not special is not supported");
        if (content.empty()) refuse("an added token is empty");
        const std::int32_t id = checked_id(token.at("id").as_int(), content);
        if (!parts.special_tokens.emplace(id, content).second) {
            refuse(fmt::format("two added tokens have the id {}, one is {}", id, content));
        }
    }
}

Ids read_vocabulary(const Json& model, TokenizerParts& parts) {
    Ids ids;
    std::int32_t highest = -1;
    const Json::Object& vocabulary = model.at("vocab").as_object();
    for (const auto& [token, id] : vocabulary) {
        highest = std::max(highest, checked_id(id.as_int(), token));
    }
    for (const auto& [id, content] : parts.special_tokens) highest = std::max(highest, id);
    parts.words.resize(static_cast<std::size_t>(highest + 1));
    for (const auto& [token, value] : vocabulary) {
        const auto id = static_cast<std::int32_t>(value.as_int());
        ids[token] = id;
        const auto special = parts.special_tokens.find(id);
        if (special != parts.special_tokens.end()) {
            if (special->second == token) continue;
            refuse(fmt::format("two tokens have the id {}: {} and {}", id, special->second, token));
        }
        std::string& word = parts.words[static_cast<std::size_t>(id)];
        if (!word.empty()) refuse(fmt::format("two tokens have the id {}, one is {}", id, token));
        std::optional<std::string> bytes = read_spelled_bytes(token);
        if (!bytes || bytes->empty()) {
            refuse("a token is not written in the byte-level alphabet: " + token);
        }
        word = std::move(*bytes);
    }
    // Otherwise one of the two could not be written again.
    for (const auto& [id, content] : parts.special_tokens) {
        if (const auto [other, is_new] = ids.try_emplace(content, id); other->second != id) {
            refuse(fmt::format("one token has two ids, {} and {}: {}", other->second, id, content));
        }
    }
    return ids;
}

std::pair<std::string, std::string> sides_of(const Json& merge) {
    if (merge.is_array()) {
        const Json::Array& sides = merge.as_array();
        if (sides.size() != 2) refuse("a merge is not a pair: " + merge.dump());
        return {sides[0].as_string(), sides[1].as_string()};
    }
    const std::string& text = merge.as_string();
    const std::size_t blank = text.find(' ');
    if (blank == std::string::npos || text.find(' ', blank + 1) != std::string::npos) {
        refuse("a merge is not two tokens with one blank between: " + text);
    }
    return {text.substr(0, blank), text.substr(blank + 1)};
}

void read_merges(const Json& model, const Ids& ids, TokenizerParts& parts) {
    for (const Json& merge : model.at("merges").as_array()) {
        const auto [left, right] = sides_of(merge);
        const auto id_of = [&](const std::string& token) {
            const auto found = ids.find(token);
            if (found == ids.end()) {
                refuse(
                    fmt::format("merge {} of {} and {} needs a token that the vocabulary lacks: "
                                "{}",
                                parts.merges.size(), left, right, token));
            }
            return found->second;
        };
        parts.merges.push_back(
            {.left = id_of(left), .right = id_of(right), .result = id_of(left + right)});
    }
}

Json byte_level(bool add_prefix_space) {
    return Json::object({{"type", "ByteLevel"},
                         {"add_prefix_space", add_prefix_space},
                         {"trim_offsets", true},
                         {"use_regex", true}});
}

}  // namespace

TokenizerParts parse_tokenizer_json(std::string_view text) {
    const Json json = Json::parse(text);
    for (const char* member : {"truncation", "padding", "normalizer"}) {
        require_absent(json, "", member);
    }
    require_byte_level(json, "pre_tokenizer", false);
    const Json& cut = json.at("pre_tokenizer");
    require_false(cut, "pre_tokenizer.", "add_prefix_space");
    if (!cut.get_bool("use_regex", true)) refuse("pre_tokenizer.use_regex false is not supported");
    require_byte_level(json, "post_processor", true);
    require_byte_level(json, "decoder", true);
    const Json& model = json.at("model");
    const std::string type = model.get_string("type", "BPE");
    if (type != "BPE") refuse("a model of another type than BPE is not supported: " + type);
    // unk_token and fuse_unk say nothing here: every byte has a token of its own.
    for (const char* member : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
        require_absent(model, "model.", member);
    }
    require_false(model, "model.", "byte_fallback");
    TokenizerParts parts;
    parts.ignore_merges = model.get_bool("ignore_merges");
    read_added_tokens(json, parts);
    const Ids ids = read_vocabulary(model, parts);
    read_merges(model, ids, parts);
    return parts;
}

std::string write_tokenizer_json(const TokenizerParts& parts) {
    Json added = Json::array();
    for (const auto& [id, content] : parts.special_tokens) {
        added.push(Json::object({{"id", id},
                                 {"content", content},
                                 {"single_word", false},
                                 {"lstrip", false},
                                 {"rstrip", false},
                                 {"normalized", false},
                                 {"special", true}}));
    }
    Json vocabulary = Json::object();
    std::vector<std::string> spelled;
    for (std::size_t i = 0; i < parts.words.size(); ++i) {
        const auto id = static_cast<std::int32_t>(i);
        const auto special = parts.special_tokens.find(id);
        spelled.push_back(special != parts.special_tokens.end() ? special->second
                                                                : spell_bytes(parts.words[i]));
        if (!spelled.back().empty()) vocabulary.as_object().emplace_back(spelled.back(), id);
    }
    Json merges = Json::array();
    for (const TokenizerParts::Merge& merge : parts.merges) {
        merges.push(Json::array({spelled[static_cast<std::size_t>(merge.left)],
                                 spelled[static_cast<std::size_t>(merge.right)]}));
    }
    Json model = Json::object({{"type", "BPE"},
                               {"dropout", nullptr},
                               {"unk_token", nullptr},
                               {"continuing_subword_prefix", nullptr},
                               {"end_of_word_suffix", nullptr},
                               {"fuse_unk", false},
                               {"byte_fallback", false},
                               {"ignore_merges", parts.ignore_merges},
                               {"vocab", std::move(vocabulary)},
                               {"merges", std::move(merges)}});
    return Json::object({{"version", "1.0"},
                         {"truncation", nullptr},
                         {"padding", nullptr},
                         {"added_tokens", std::move(added)},
                         {"normalizer", nullptr},
                         {"pre_tokenizer", byte_level(false)},
                         {"post_processor", nullptr},
                         {"decoder", byte_level(true)},
                         {"model", std::move(model)}})
        .dump(2);
}

}  // namespace gruca::data
