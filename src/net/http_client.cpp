#include "net/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/boundary.h"
#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "net/url.h"

namespace gruca::net {
namespace {

constexpr int kCancelPollMs = 100;
constexpr std::size_t kIdleLinesMax = 64;
constexpr std::size_t kHeaderBytesMax = 1u << 20;
constexpr long kTransferBufferBytes = 512L << 10;  // Fewer, larger pieces: half the CPU per byte.
constexpr long kStallBytesPerSecond = 1024;
constexpr long kStallSeconds = 30;

// One connection, kept for the next call: a transfer and the loop that drives it.
class Line {
  public:
    Line() : transfer(curl_easy_init()), loop(curl_multi_init()) {
        CHECK(transfer != nullptr && loop != nullptr, "libcurl cannot be initialised");
    }
    ~Line() {
        curl_easy_cleanup(transfer);
        curl_multi_cleanup(loop);
    }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    CURL* const transfer;
    CURLM* const loop;
};

class HeaderList {
  public:
    ~HeaderList() { curl_slist_free_all(list_); }
    HeaderList() = default;
    HeaderList(const HeaderList&) = delete;
    HeaderList& operator=(const HeaderList&) = delete;
    void add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
    curl_slist* get() const { return list_; }

  private:
    curl_slist* list_ = nullptr;
};

// What arrives during one call.
struct Arrival {
    std::size_t body_bytes_max;
    HttpResponse response = {};
    std::size_t header_bytes = 0;
    bool too_long = false;
    bool head_ended = false;  // libcurl takes a head cut off after a whole line for complete.
    const HttpTransfer* transfer = nullptr;
    CURL* line = nullptr;
    std::uint64_t uploaded = 0;
    std::optional<Error> thrown = {};  // By a function of the transfer.
};

bool is_success(CURL* line) {
    long status = 0;
    curl_easy_getinfo(line, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status < 300;
}

std::size_t receive_header(char* data, std::size_t, std::size_t size, void* target) {
    auto& arrival = *static_cast<Arrival*>(target);
    arrival.header_bytes += size;
    if (arrival.header_bytes > kHeaderBytesMax) {
        arrival.too_long = true;
        return 0;
    }
    const std::string_view line(data, size);
    if (line.starts_with("HTTP/")) {  // After "100 Continue" comes the answer.
        arrival.response.headers = {};
        arrival.head_ended = false;
        return size;
    }
    arrival.head_ended = arrival.head_ended || trim(line).empty();
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return size;
    arrival.response.headers.add(std::string(line.substr(0, colon)),
                                 std::string(trim(line.substr(colon + 1))));
    return size;
}

std::size_t receive_body(char* data, std::size_t, std::size_t size, void* target) {
    auto& arrival = *static_cast<Arrival*>(target);
    if (arrival.transfer != nullptr && arrival.transfer->download && is_success(arrival.line)) {
        arrival.thrown =
            run_guarded([&] { arrival.transfer->download(std::as_bytes(std::span(data, size))); });
        return arrival.thrown ? 0 : size;
    }
    if (arrival.response.body.size() + size > arrival.body_bytes_max) {
        arrival.too_long = true;
        return 0;
    }
    arrival.response.body.append(data, size);
    return size;
}

std::size_t supply_body(char* data, std::size_t, std::size_t size, void* source) {
    auto& arrival = *static_cast<Arrival*>(source);
    const std::uint64_t left = arrival.transfer->upload_bytes - arrival.uploaded;
    if (left == 0) return 0;
    std::size_t count = 0;
    arrival.thrown = run_guarded([&] {
        count = arrival.transfer->upload(
            std::as_writable_bytes(std::span(data, std::min<std::uint64_t>(size, left))));
        if (count == 0 || count > left) {
            throw Error(ErrorCode::internal, "an upload's source ends before its length");
        }
    });
    arrival.uploaded += count;
    return arrival.thrown ? CURL_READFUNC_ABORT : count;
}

void require_safe(const HttpRequest& request) {
    const auto has_break = [](const std::string& text) {
        return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
    };
    bool safe = !has_break(request.target) && !has_break(request.method) &&
                request.target.starts_with('/') && request.target.find(' ') == std::string::npos;
    for (const auto& [name, value] : request.headers.fields()) {
        safe = safe && !has_break(name) && !has_break(value);
    }
    if (!safe) {
        throw Error(ErrorCode::invalid_argument,
                    "a request's target or header has an illegal character: " + request.target);
    }
}

template <class Value>
void set(CURL* transfer, CURLoption option, Value value) {
    const CURLcode code = curl_easy_setopt(transfer, option, value);
    CHECK(code == CURLE_OK, "curl option {}: {}", static_cast<int>(option),
          curl_easy_strerror(code));
}

void set_up_headers(CURL* transfer, const Headers& headers, HeaderList& lines) {
    for (const auto& [name, value] : headers.fields()) {
        lines.add(value.empty() ? name + ";" : name + ": " + value);
    }
    // libcurl adds these of its own accord; a name with nothing after the colon forbids it.
    for (const char* unwanted : {"Accept", "Content-Type", "Expect", "User-Agent"}) {
        if (!headers.find(unwanted)) lines.add(std::string(unwanted) + ":");
    }
    set(transfer, CURLOPT_HTTPHEADER, lines.get());
}

void set_up_request(CURL* transfer, const std::string& origin, const HttpRequest& request) {
    set(transfer, CURLOPT_URL, (origin + "/").c_str());
    set(transfer, CURLOPT_REQUEST_TARGET, request.target.c_str());
    set(transfer, CURLOPT_PROXY, "");
    set(transfer, CURLOPT_NOPROXY, "*");
    set(transfer, CURLOPT_PROTOCOLS_STR, "http");
    set(transfer, CURLOPT_FOLLOWLOCATION, 0L);
    set(transfer, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(transfer, CURLOPT_NOSIGNAL, 1L);
    set(transfer, CURLOPT_CUSTOMREQUEST, request.method.c_str());
}

void set_up_body(CURL* transfer, const HttpRequest& request) {
    const bool has_body = !request.body.empty() || request.method == "POST" ||
                          request.method == "PUT" || request.method == "PATCH";
    if (has_body) {
        set(transfer, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
        set(transfer, CURLOPT_POSTFIELDS, request.body.data());
    } else if (request.method == "HEAD") {
        set(transfer, CURLOPT_NOBODY, 1L);
    }
}

void set_up_transfer(CURL* line, Arrival& arrival) {
    set(line, CURLOPT_BUFFERSIZE, kTransferBufferBytes);
    set(line, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
    set(line, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    if (!arrival.transfer->upload) return;
    set(line, CURLOPT_UPLOAD, 1L);
    set(line, CURLOPT_UPLOAD_BUFFERSIZE, kTransferBufferBytes);
    set(line, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(arrival.transfer->upload_bytes));
    set(line, CURLOPT_READFUNCTION, &supply_body);
    set(line, CURLOPT_READDATA, &arrival);
}

// Runs the transfer to its end, or returns nothing when it was cancelled.
std::optional<CURLcode> drive(Line& line, const std::function<bool()>& cancelled) {
    struct Attached {
        Line& line;
        explicit Attached(Line& attached) : line(attached) {
            curl_multi_add_handle(line.loop, line.transfer);
        }
        ~Attached() { curl_multi_remove_handle(line.loop, line.transfer); }
    } attached(line);
    for (;;) {
        int running = 0;
        const CURLMcode code = curl_multi_perform(line.loop, &running);
        CHECK(code == CURLM_OK, "curl_multi_perform: {}", curl_multi_strerror(code));
        int left = 0;
        while (const CURLMsg* message = curl_multi_info_read(line.loop, &left)) {
            if (message->msg == CURLMSG_DONE) return message->data.result;
        }
        if (cancelled && cancelled()) return std::nullopt;
        curl_multi_poll(line.loop, nullptr, 0, kCancelPollMs, nullptr);
    }
}

[[noreturn]] void throw_failure(CURL* transfer, CURLcode code, const std::string& origin) {
    curl_off_t before_transfer_us = 0;
    curl_easy_getinfo(transfer, CURLINFO_PRETRANSFER_TIME_T, &before_transfer_us);
    if (code == CURLE_OPERATION_TIMEDOUT && before_transfer_us > 0) {
        throw Error(ErrorCode::deadline_exceeded, "no whole answer in time from " + origin);
    }
    throw Error(ErrorCode::unavailable,
                (before_transfer_us > 0 ? "cut off before the answer by " : "cannot reach ") +
                    origin + ": " + curl_easy_strerror(code));
}

}  // namespace

class HttpClient::Impl {
  public:
    explicit Impl(HttpClientOptions options) : options_(options) {
        static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
        CHECK(initialised == CURLE_OK, "libcurl: {}", curl_easy_strerror(initialised));
    }

    struct Call {
        const std::string& origin;
        const HttpRequest& request;
        std::chrono::milliseconds timeout;  // 0: none.
        const std::function<bool()>& cancelled;
        const HttpTransfer* transfer = nullptr;
    };

    HttpResponse run(const Call& call) {
        const Origin checked = parse_origin(call.origin);
        require_safe(call.request);
        const std::string server = checked.host + ":" + std::to_string(checked.port);
        std::unique_ptr<Line> line = take_line();
        curl_easy_reset(line->transfer);  // Options only: the connection stays.
        HeaderList headers;
        Arrival arrival{.body_bytes_max = options_.body_bytes_max,
                        .transfer = call.transfer,
                        .line = line->transfer};
        set_up(call, server, headers, arrival);
        const std::optional<CURLcode> code = drive(*line, call.cancelled);
        if (!code) throw Error(ErrorCode::cancelled, "the call was cancelled: " + server);
        if (arrival.thrown) throw *arrival.thrown;
        if (arrival.too_long) {
            throw Error(ErrorCode::resource_exhausted, "the answer is longer than " +
                                                           human_bytes(options_.body_bytes_max) +
                                                           ", from " + server);
        }
        if (*code != CURLE_OK) throw_failure(line->transfer, *code, server);
        if (!arrival.head_ended) throw_failure(line->transfer, CURLE_PARTIAL_FILE, server);
        long status = 0;
        curl_easy_getinfo(line->transfer, CURLINFO_RESPONSE_CODE, &status);
        arrival.response.status = static_cast<int>(status);
        give_back(std::move(line));
        return std::move(arrival.response);
    }

    const HttpClientOptions& options() const { return options_; }

  private:
    void set_up(const Call& call, const std::string& server, HeaderList& headers,
                Arrival& arrival) const {
        CURL* transfer = arrival.line;
        set_up_request(transfer, "http://" + server, call.request);
        set_up_headers(transfer, call.request.headers, headers);
        set(transfer, CURLOPT_CONNECTTIMEOUT_MS,
            static_cast<long>(options_.connect_timeout.count()));
        set(transfer, CURLOPT_TIMEOUT_MS, static_cast<long>(call.timeout.count()));
        set(transfer, CURLOPT_HEADERFUNCTION, &receive_header);
        set(transfer, CURLOPT_HEADERDATA, &arrival);
        set(transfer, CURLOPT_WRITEFUNCTION, &receive_body);
        set(transfer, CURLOPT_WRITEDATA, &arrival);
        if (call.transfer != nullptr) set_up_transfer(transfer, arrival);
        if (call.transfer == nullptr || !call.transfer->upload) set_up_body(transfer, call.request);
    }

    std::unique_ptr<Line> take_line() {
        const std::lock_guard lock(mutex_);
        if (idle_.empty()) return std::make_unique<Line>();
        std::unique_ptr<Line> line = std::move(idle_.back());
        idle_.pop_back();
        return line;
    }

    // Only after a success: a line that failed is closed.
    void give_back(std::unique_ptr<Line> line) {
        const std::lock_guard lock(mutex_);
        if (idle_.size() < kIdleLinesMax) idle_.push_back(std::move(line));
    }

    const HttpClientOptions options_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Line>> idle_;  // Guarded by mutex_.
};

HttpClient::HttpClient(HttpClientOptions options) : impl_(std::make_unique<Impl>(options)) {}

HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const std::string& origin, const HttpRequest& request,
                              std::optional<std::chrono::milliseconds> timeout,
                              const std::function<bool()>& cancelled) {
    return impl_->run({.origin = origin,
                       .request = request,
                       .timeout = timeout.value_or(impl_->options().total_timeout),
                       .cancelled = cancelled});
}

HttpResponse HttpClient::transfer(const std::string& origin, const HttpRequest& request,
                                  const HttpTransfer& transfer) {
    return impl_->run({.origin = origin,
                       .request = request,
                       .timeout = {},
                       .cancelled = transfer.cancelled,
                       .transfer = &transfer});
}

}  // namespace gruca::net
