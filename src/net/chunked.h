// net/chunked.h
//
// Takes a chunked body apart: "size[;extension]" CRLF, that many bytes, CRLF, and so on; a chunk of
// size 0, trailers, an empty line. HTTP's Transfer-Encoding and Amazon's aws-chunked are both this.
//
// Incremental and pure: bytes go in as they come, in pieces of any length, and what they mean comes
// out. Nothing is held but the line being read and the trailers, both limited. Strict: lines end
// with CRLF, sizes are plain hexadecimal digits.
//
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"

namespace gruca::net {

constexpr std::size_t kChunkLineBytesMax = 1024;           // "size;extension", or one trailer.
constexpr std::size_t kTrailersMax = 32;                   // Fields after the last chunk.
constexpr std::uint64_t kChunkBytesMax = 1ull << 40;       // No chunk is longer: 1 TiB.
constexpr std::uint64_t kChunkFramingBytesMax = 4u << 20;  // Lines in excess of 1/16 of the data.

class ChunkedReader {
  public:
    enum class What {
        more,   // All of the input is used up and the body goes on.
        chunk,  // A chunk begins: size() and extension(). Size 0 is the last.
        data,   // data() are bytes of the chunk; they lie in the input.
        end,    // The body is over; trailers() are whole. What is left of the input is not ours.
        malformed,  // fault() says why. Nothing more can be read.
    };

    // Uses up the front of `input` and says what it was.
    What next(std::string_view& input);

    std::uint64_t size() const { return size_; }
    std::string_view extension() const { return extension_; }  // Without the ';'.
    std::string_view data() const { return data_; }
    const Headers& trailers() const { return trailers_; }
    const std::string& fault() const { return fault_; }

  private:
    enum class State { size_line, data, after_data, trailers, ended, malformed };

    bool take_line(std::string_view& input);  // True when line_ is whole.
    What take_size_line(std::string_view& input);
    What take_data(std::string_view& input);
    What take_trailers(std::string_view& input);
    What fail(std::string why);

    State state_ = State::size_line;
    std::string line_;
    std::string extension_;
    std::string_view data_;
    std::string fault_;
    Headers trailers_;
    std::uint64_t size_ = 0;
    std::uint64_t left_ = 0;           // Of the chunk.
    std::uint64_t data_bytes_ = 0;     // Of the body, so far.
    std::uint64_t framing_bytes_ = 0;  // Of size lines and trailers, so far.
};

}  // namespace gruca::net
