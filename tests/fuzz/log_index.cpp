// A log and its index, of which a crash or a bad disk may have left anything. The input: flags, the
// number of index records, the index, the log. Forwards and backwards show the same events.

#include <fcntl.h>

#include "base/temp_dir.h"
#include "base/text.h"
#include "fuzz/target.h"
#include "service/telemetry/log_page.h"

namespace service = gruca::service;

namespace {

void write_file(const std::filesystem::path& path, std::string_view content) {
    const gruca::UniqueFd file = gruca::open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
    gruca::write_all(file.get(), gruca::bytes_of(content));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const gruca::TempDir directory;
    const service::LogFiles files{.bytes = directory.path() / "x.log",
                                  .index = directory.path() / "x.idx"};
    const std::string text = gruca::fuzz::text_of(data, size);
    std::string_view rest = text;
    const bool complete = (gruca::fuzz::take_byte(rest) & 1) != 0;
    const std::size_t index_bytes =
        std::min<std::size_t>(gruca::fuzz::take_byte(rest) * std::size_t{5}, rest.size());
    write_file(files.index, rest.substr(0, index_bytes));
    write_file(files.bytes, rest.substr(index_bytes));

    service::LogReader log(files, complete);
    std::vector<std::uint64_t> forwards;
    std::uint64_t at = 0;
    while (const std::optional<service::LogEvent> event = log.next(at)) {
        CHECK(event->offset >= at && event->end > event->offset && event->end <= log.size(),
              "event at {} ends at {}", event->offset, event->end);
        CHECK(!event->message.empty() && gruca::is_utf8(event->message), "not a text");
        CHECK(log.event_start(event->offset) <= event->offset, "starts behind itself");
        forwards.push_back(event->offset);
        at = event->end;
    }
    std::vector<std::uint64_t> backwards;
    for (std::uint64_t until = log.size();;) {
        const service::LogPage page = service::page_backward(log, until, {.events_max = 3});
        if (page.events.empty()) break;
        for (auto event = page.events.rbegin(); event != page.events.rend(); ++event) {
            backwards.insert(backwards.begin(), event->offset);
        }
        CHECK(page.begin < until, "a page that goes nowhere");
        until = page.begin;
    }
    CHECK(forwards == backwards, "{} events forwards, {} backwards", forwards.size(),
          backwards.size());
    log.first_at_or_after(gruca::time_from_ms(1));
    log.first_time();
    log.last_time();
    return 0;
}
