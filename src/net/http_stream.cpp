#include "net/http_stream.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace gruca::net {

namespace {
constexpr std::size_t kPieceBytes = 64u << 10;
}

std::string read_whole(HttpStream& stream, std::size_t bytes_max) {
    const auto too_long = [&] {
        return Error(ErrorCode::resource_exhausted,
                     "the request's body is longer than " + human_bytes(bytes_max));
    };
    const auto promised = stream.body_bytes();
    if (promised && *promised > bytes_max) throw too_long();
    std::string body;
    for (;;) {
        const std::size_t before = body.size();
        body.resize(before + kPieceBytes);
        const std::size_t count =
            stream.read(std::as_writable_bytes(std::span(body)).subspan(before));
        body.resize(before + count);
        if (count == 0) return body;
        if (body.size() > bytes_max) throw too_long();
    }
}

}  // namespace gruca::net
