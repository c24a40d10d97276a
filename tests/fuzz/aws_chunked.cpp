// Bodies in aws-chunked framing, held against their signatures. The same in any pieces; no longer
// than what the head says; and what our own framing says of any bytes is those bytes.

#include <fmt/format.h>

#include "base/text.h"
#include "fuzz/target.h"
#include "net/sigv4_canonical.h"
#include "net/sigv4_payload.h"
#include "net/sigv4_s3.h"

namespace net = gruca::net;

namespace {

struct Judgement {
    std::string data;  // Nothing may come of it when there is a fault.
    bool taken = false;
    std::vector<std::pair<std::string, std::string>> trailers;
    friend bool operator==(const Judgement&, const Judgement&) = default;
};

Judgement judge(const net::PayloadRule& rule, std::string body, std::size_t piece_bytes) {
    Judgement judgement;
    net::SignedPayload payload(rule);
    const auto bytes = std::as_writable_bytes(std::span(body));
    for (std::size_t at = 0; at < bytes.size() && !payload.fault(); at += piece_bytes) {
        const auto piece = bytes.subspan(at, std::min(piece_bytes, bytes.size() - at));
        judgement.data += gruca::text_of(payload.take(piece));
        CHECK(judgement.data.size() <= rule.decoded_bytes.value_or(body.size()), "too much");
    }
    judgement.taken = !payload.finish();
    if (!judgement.taken) return {};
    CHECK(judgement.data.size() == payload.decoded_bytes(), "counted wrongly");
    judgement.trailers = payload.trailers().fields();
    return judgement;
}

net::PayloadRule rule_of(net::PayloadForm form) {
    net::PayloadRule rule{.form = form};
    rule.signing_key = "a key of this target";
    rule.date = "20150830T123600Z";
    rule.scope = "20150830/gruca-local/s3/aws4_request";
    rule.seed_signature = std::string(64, 'a');
    return rule;
}

// What a client would send: `data` in chunks of `chunk_bytes`, signed when the form wants it.
std::string framed(const net::PayloadRule& rule, std::string_view data, std::size_t chunk_bytes) {
    std::string body, last = rule.seed_signature;
    for (bool more = true; more;) {
        const std::string_view chunk = data.substr(0, chunk_bytes);
        data.remove_prefix(chunk.size());
        more = !chunk.empty();
        std::string extension;
        if (rule.form >= net::PayloadForm::signed_chunks) {
            last = net::hmac_hex(
                rule.signing_key,
                fmt::format("AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{}\n{}", rule.date, rule.scope,
                            last, net::sha256_hex(""), net::sha256_hex(chunk)));
            extension = ";chunk-signature=" + last;
        }
        body += fmt::format("{:x}{}\r\n{}{}", chunk.size(), extension, chunk, more ? "\r\n" : "");
    }
    return body + "\r\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text = gruca::fuzz::text_of(data, size);
    std::string_view rest = text;
    const std::uint8_t choice = gruca::fuzz::take_byte(rest);
    const std::string body(rest);
    for (const auto form : {net::PayloadForm::chunks, net::PayloadForm::signed_chunks,
                            net::PayloadForm::signed_chunks_and_trailer}) {
        net::PayloadRule rule = rule_of(form);
        if ((choice & 1) != 0) rule.decoded_bytes = choice / 4;
        if ((choice & 2) != 0) rule.trailers = {"x-amz-checksum-crc32"};
        const Judgement whole = judge(rule, body, body.size() + 1);
        for (const std::size_t piece_bytes : {1, 7}) {
            CHECK(judge(rule, body, piece_bytes) == whole, "judged by its pieces of {}",
                  piece_bytes);
        }
        if (form == net::PayloadForm::signed_chunks_and_trailer) continue;
        rule = rule_of(form);
        rule.decoded_bytes = body.size();
        const std::string ours = framed(rule, body, 1 + choice);
        const Judgement taken = judge(rule, ours, 13);
        CHECK(taken.taken && taken.data == body, "our own framing is not taken");
        if (form != net::PayloadForm::signed_chunks || body.empty()) continue;
        std::string forged = ours;
        forged[forged.find("\r\n") + 2] ^= 1;
        CHECK(!judge(rule, forged, forged.size()).taken, "a forged byte is taken");
    }
    return 0;
}
