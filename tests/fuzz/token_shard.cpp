// A pair of token files. The input: a byte that says how long the .bin is, then the .idx. What
// opens can be read through to the last token.

#include "data/token_shard.h"

#include <fcntl.h>

#include "base/temp_dir.h"
#include "base/text.h"
#include "fuzz/target.h"

namespace data_room = gruca::data;

namespace {

void write_file(const std::filesystem::path& path, std::string_view content) {
    const gruca::UniqueFd file = gruca::open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    gruca::write_all(file.get(), gruca::bytes_of(content));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const gruca::TempDir directory;
    const std::string text = gruca::fuzz::text_of(data, size);
    std::string_view index = text;
    write_file(directory.path() / "x.bin", std::string(gruca::fuzz::take_byte(index), '\1'));
    write_file(directory.path() / "x.idx", index);
    gruca::fuzz::takes([&] {
        const data_room::TokenShard shard(directory.path() / "x");
        std::int64_t tokens = 0;
        for (std::int64_t i = 0; i < shard.sequences(); ++i) {
            std::vector<std::int32_t> into(static_cast<std::size_t>(shard.length(i)));
            shard.read(i, 0, INT32_MAX, into);
            tokens += shard.length(i);
        }
        CHECK(tokens == shard.tokens(), "{} tokens", tokens);
        for (std::int64_t i = 0; i < shard.documents(); ++i) {
            CHECK(shard.document_end(i) <= shard.sequences(), "document {}", i);
        }
    });
    return 0;
}
