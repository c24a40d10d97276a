#include "agent/agent.h"

#include <signal.h>

#include <mutex>
#include <utility>

#include "base/boundary.h"
#include "base/log.h"

namespace gruca::agent {
namespace {

using spec::NodePhase;
using spec::StopOrder;

constexpr std::size_t kEventsMax = 1000;
constexpr std::chrono::hours kNoDeadline{1};
constexpr std::chrono::milliseconds kWatchEvery{500};

constexpr const char* kClientError = "ClientError";
constexpr const char* kNodeError = "InternalServerError";
constexpr const char* kProgramError = "AlgorithmError";

// Whose fault a failed step is: the request's, or this machine's.
const char* kind_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::not_found:
        case ErrorCode::already_exists:
        case ErrorCode::precondition_failed:
        case ErrorCode::permission_denied:
            return kClientError;
        default:
            return kNodeError;
    }
}

}  // namespace

Agent::Agent(NodeWorkOptions options, ServiceLink& service, store::ObjectStore& store,
             const Clock& clock)
    : node_id_(options.config.node_id),
      service_(service),
      clock_(clock),
      work_(std::move(options), store, clock),
      events_(kEventsMax),
      reporter_(service),
      shipper_(std::make_unique<LogShipper>(work_.log(), service)) {
    report_.node_id = node_id_;
}

Agent::~Agent() {
    events_.close();  // The threads' pushes return at once from here on.
}

void Agent::run() {
    enter(NodePhase::ready);
    poller_ = std::jthread([this](std::stop_token stop) { poll(stop); });
    for (;;) {
        Step step = next_step(course_, order_, clock_.steady_now());
        if (step == Step::leave) break;
        if (do_step(step)) continue;
        const auto deadline = next_deadline(course_, order_);
        const auto patience =
            deadline ? std::chrono::ceil<std::chrono::milliseconds>(*deadline - clock_.steady_now())
                     : kNoDeadline;
        std::optional<Event> event =
            events_.pop_for(std::max(patience, std::chrono::milliseconds(1)));
        if (event) std::visit([this](auto& happened) { handle(happened); }, *event);
    }
    log_info("released");
    work_.clean_up();
}

void Agent::poll(const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::int64_t seen = 0;
    Instant heard = clock_.steady_now();  // Of the last answer that was not a refusal.
    for (int failures = 0; !stop.stop_requested();) {
        spec::NodeOrder order;
        const std::optional<Error> failure =
            run_guarded([&] { order = service_.poll(seen, stop); });
        if (!failure) {
            failures = 0;
            heard = clock_.steady_now();
            if (order.version > seen) {
                seen = order.version;
                events_.push(OrderHeard{std::move(order)});
            }
            continue;
        }
        if (stop.stop_requested()) return;
        if (++failures == 1) log_warning("no order can be heard now: {}", failure->what());
        const bool refused = failure->code() == ErrorCode::permission_denied ||
                             failure->code() == ErrorCode::not_found;
        if (!refused) heard = clock_.steady_now();
        if (clock_.steady_now() - heard > kRefusedMax) {
            log_error("the service does not know this node any more: it ends");
            events_.push(OrderHeard{{.version = seen + 1, .task = {}, .release = true}});
            return;
        }
        std::unique_lock lock(mutex);
        stopped.wait_for(lock, stop, pause_after(failures), [] { return false; });
    }
}

void Agent::handle(OrderHeard& event) {
    // A task is given once; an order that says only "release" does not take it back.
    if (!event.order.task) event.order.task = std::move(order_.task);
    order_ = std::move(event.order);
    log_info("order {}: stop {}, assemble {}, release {}", order_.version,
             static_cast<int>(order_.stop), order_.assemble, order_.release);
}

void Agent::handle(WorkDone& event) {
    course_.working = false;
    const bool cancelled = std::exchange(course_.cancelling, false);
    switch (course_.phase) {
        case NodePhase::downloading:
            if (event.failure && !cancelled) {
                give_up(event.failure->message(), kind_of(event.failure->code()));
            }
            return;
        case NodePhase::uploading:
            course_.settled = true;
            if (event.failure && !cancelled) {
                give_up(event.failure->message(), kClientError);
            }
            return;
        case NodePhase::uploaded:
            if (!event.failure) return enter(NodePhase::assembled);
            if (!cancelled) {
                give_up(event.failure->message(), kClientError);
            }
            return;
        default:
            return;
    }
}

void Agent::handle(ProgramEnded& event) {
    const Ending& ending = event.ending;
    if (!course_.running) return;  // It was given up before it ended.
    watcher_ = {};
    keeper_.reset();
    course_.running = false;
    if (!ending.failure.empty()) {
        return give_up(ending.failure, ending.order_is_wrong ? kClientError : kNodeError);
    }
    log_info("the program ended with {}", ending.status.describe());
    if (ending.stuck) {
        run_guarded([&] {
            work_.say(
                "a process of this program was killed and does not end: it hangs in the "
                "kernel, perhaps on a file system that does not answer");
        });
    }
    report_.ended = true;
    report_.exit_code = ending.status.shell_code();
    report_.exit_signal = ending.status.signal;
    report_.ended_at = ending.at;
    // A program that was told to end and ends in its own way has not failed. One whose end is only
    // now heard of may have failed before.
    const bool told = told_to_end_at_ && ending.at >= *told_to_end_at_;
    if (!ending.status.ok() && !told) {
        report_.failure_kind = kProgramError;
        report_.failure = ending.status.describe();
        const auto unreadable =
            run_guarded([&] { report_.failure = work_.why_failed(*order_.task, ending); });
        if (unreadable) log_warning("no reason can be read: {}", unreadable->what());
    } else {
        run_guarded([&] { work_.remark(*order_.task); });
    }
    enter(NodePhase::uploading);
}

void Agent::handle(LogComplete&) {
    course_.log_complete = true;
}

bool Agent::do_step(Step step) {
    const auto now = clock_.steady_now();
    switch (step) {
        case Step::wait:
        case Step::leave:
            return false;
        case Step::download:
            enter(NodePhase::downloading);
            work_on([this, task = *order_.task](const auto& stop) { work_.download(task, stop); });
            return true;
        case Step::start_program:
            start_program();
            return true;
        case Step::skip_program:
            course_.settled = true;
            enter(NodePhase::uploading);
            return true;
        case Step::terminate:
            course_.terminated = now;
            note_told_to_end();
            keeper_->terminate();
            return true;
        case Step::kill:
            course_.killed = now;
            note_told_to_end();
            keeper_->kill();
            return true;
        case Step::destroy:
            course_.destroyed = now;
            keeper_->destroy();
            work_.kill_everything();
            return true;
        case Step::abandon:
            keeper_->abandon();
            events_.push(ProgramEnded{
                {.status = {.code = 0, .signal = SIGKILL}, .at = clock_.now(), .stuck = true}});
            return false;
        case Step::cancel:
            course_.cancelling = true;
            worker_.request_stop();
            return true;
        case Step::settle: {
            const bool failed = report_.failure_kind == kProgramError;
            if (order_.stop == StopOrder::kill) {
                course_.settled = true;
                return true;
            }
            work_on([this, task = *order_.task, outputs = !failed](const auto& stop) {
                work_.settle(task, outputs, stop);
            });
            return true;
        }
        case Step::close_log:
            course_.closing_log = true;
            shipper_->finish([this] { events_.push(LogComplete{}); });
            return true;
        case Step::tell_end:
            course_.told = true;
            if (course_.given_up) {
                tell();
            } else {
                enter(NodePhase::uploaded);
            }
            return true;
        case Step::assemble:
            work_on([this, task = *order_.task](const auto& stop) { work_.assemble(task, stop); });
            return true;
    }
    return false;
}

void Agent::note_told_to_end() {
    if (!told_to_end_at_) told_to_end_at_ = clock_.now();
}

void Agent::work_on(std::function<void(const std::stop_token&)> body) {
    course_.working = true;
    worker_ = std::jthread([this, body = std::move(body)](std::stop_token stop) {
        events_.push(WorkDone{run_guarded([&] { body(stop); })});
    });
}

void Agent::start_program() {
    const std::optional<Error> failure = run_guarded([&] { keeper_ = work_.start(*order_.task); });
    if (failure) return give_up(failure->message(), kind_of(failure->code()));
    course_.running = true;
    enter(NodePhase::training);
    watcher_ = std::jthread([this](std::stop_token stop) {
        while (!stop.stop_requested()) {
            std::optional<Ending> ending = keeper_->wait_for(kWatchEvery);
            if (!ending) continue;
            events_.push(ProgramEnded{std::move(*ending)});
            return;
        }
    });
}

void Agent::give_up(const std::string& why, const std::string& kind) {
    log_error("given up: {}", why);
    course_.given_up = true;
    course_.told = false;
    report_.given_up = true;
    report_.gave_up_at = clock_.now();
    if (report_.failure.empty()) {
        report_.failure = why;
        report_.failure_kind = kind;
    } else {
        report_.failure += "; " + why;  // What the program failed of stays the reason.
    }
}

void Agent::enter(NodePhase phase) {
    course_.phase = phase;
    report_.phase = phase;
    tell();
}

void Agent::tell() {
    reporter_.say(report_);
}

}  // namespace gruca::agent
