// tokenizer.json: what is read is written so that it is read as the same tokenizer, and where all
// 256 bytes have a token, any text comes back from its tokens.

#include "data/tokenizer.h"
#include "fuzz/target.h"

namespace data_room = gruca::data;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    data_room::TokenizerParts parts;
    if (!gruca::fuzz::takes([&] { parts = data_room::parse_tokenizer_json(text); })) return 0;
    // A large empty vocabulary is right and slow.
    if (parts.words.size() > 10'000) return 0;
    const std::string written = data_room::write_tokenizer_json(parts);
    const data_room::TokenizerParts again = data_room::parse_tokenizer_json(written);
    CHECK(again.words == parts.words, "words: {}", written);
    CHECK(again.special_tokens == parts.special_tokens, "special tokens: {}", written);
    CHECK(again.merges == parts.merges, "merges: {}", written);
    gruca::fuzz::takes([&] {
        const data_room::Tokenizer tokenizer(parts);
        const std::string sample = text.substr(0, 200);
        CHECK(tokenizer.decode(tokenizer.encode(sample)) == sample, "not the text that went in");
    });
    return 0;
}
