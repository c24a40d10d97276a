#include "train/job.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "base/boundary.h"
#include "base/file.h"
#include "base/log.h"
#include "comm/gloo_comm.h"
#include "comm/rendezvous.h"
#include "comm/thread_comm.h"
#include "model/model_directory.h"
#include "spec/fields.h"
#include "store/object_store.h"
#include "train/checkpoint_keeper.h"
#include "train/job_input.h"
#include "train/loop.h"
#include "train/shard_samples.h"

namespace gruca::train {
namespace {

namespace fs = std::filesystem;

// This instance's place among the others, alone or not.
class World {
  public:
    World(const JobInput& input, const JobOptions& options) {
        if (input.ranks() == 1) {
            alone_ = std::make_unique<comm::ThreadGroup>(1);
            return;
        }
        const std::string secret = options.job_name.empty() ? "gruca" : options.job_name;
        const comm::Endpoint meeting{.address = input.hosts[0], .port = options.rendezvous_port};
        if (input.rank == 0) {
            server_.emplace(comm::RendezvousServer::Options{
                .endpoint = meeting, .size = input.ranks(), .secret = secret});
        }
        group_ = comm::make_gloo_comm(
            {.rank = input.rank,
             .size = input.ranks(),
             .own_host = input.hosts[static_cast<std::size_t>(input.rank)],
             .rendezvous = meeting,
             .secret = secret,
             .timeout = std::chrono::seconds(input.trainer.collective_timeout_s)});
    }
    comm::Comm& comm() { return alone_ ? alone_->comm(0) : *group_; }

  private:
    std::unique_ptr<comm::ThreadGroup> alone_;
    std::optional<comm::RendezvousServer> server_;  // Outlives the group.
    std::unique_ptr<comm::Comm> group_;
};

data::SampleOptions sample_options(const JobInput& input, const char* channel, bool shuffled) {
    return {.paths = {input.channel(channel)},
            .sequence_length = input.model.context_length,
            .seed = static_cast<std::uint64_t>(input.trainer.seed),
            .vocabulary = input.model.vocabulary_size,
            .shuffled = shuffled};
}

// All instances must be told the same and hold the same data, or they would train different models.
void require_agreement(comm::Comm& comm, const JobInput& input, const ShardSamples& training,
                       const std::optional<ShardSamples>& validation) {
    Json mine = spec::write_fields(input.trainer);
    mine.set("the tokenizer's vocabulary", input.model.vocabulary_size);
    mine.set("the tokens in channel train", training.tokens());
    mine.set("the tokens in channel validation", validation ? validation->tokens() : 0);
    // Shards of one size are not yet the same ones.
    mine.set("the files in channel train, by their checksum", training.checksum());
    mine.set("the files in channel validation, by their checksum",
             validation ? validation->checksum() : 0);
    mine.set("the checkpoint location", input.checkpoint_uri);
    const std::vector<std::string> all = comm::all_gather_text(comm, mine.dump());
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        const Json first = Json::parse(all[0]), other = Json::parse(all[rank]);
        for (const auto& [key, value] : first.as_object()) {
            if (other.at(key) == value) continue;
            throw Error(ErrorCode::invalid_argument,
                        fmt::format("the instances do not agree on {}; every channel must be "
                                    "FullyReplicated: {} on {}, {} on {}",
                                    key, value.dump(), input.hosts[0], other.at(key).dump(),
                                    input.hosts[rank]));
        }
    }
}

class Job {
  public:
    Job(const JobOptions& options, const JobInput& input, comm::Comm& comm, Reporter& reporter)
        : options_(options),
          input_(input),
          mesh_(comm),
          reporter_(reporter),
          stopwatch_(options.clock),
          training_(sample_options(input, "train", true)) {
        if (input.has_validation) validation_.emplace(sample_options(input, "validation", false));
    }

    void run() {
        const auto begin = options_.clock.steady_now();
        require_agreement(mesh_.world(), input_, training_, validation_);
        const bool reference = input_.trainer.kernels == "reference";
        const auto ops = reference ? kernels::make_reference_ops<float>() : kernels::make_cpu_ops();
        Trainer<float> trainer({.spec = input_.trainer,
                                .config = input_.model,
                                .ops = *ops,
                                .mesh = mesh_,
                                .stopwatch = stopwatch_});
        reporter_.report(start_event(reference));
        const LoopOutcome outcome = train(trainer);
        if (mesh_.is_first()) {
            model::write_model_directory(
                input_.base_dir / "model", input_.model, trainer.weights(),
                {.tokenizer_json = input_.tokenizer_json, .end_of_text = input_.end_of_text});
        }
        mesh_.world().barrier();  // No instance ends before the model is written.
        const std::chrono::duration<double> took = options_.clock.steady_now() - begin;
        reporter_.report(spec::EndEvent{.step = trainer.progress().step,
                                        .stopped = outcome.stopped,
                                        .loss = outcome.loss,
                                        .tokens = trainer.progress().tokens,
                                        .seconds = took.count()});
    }

  private:
    spec::StartEvent start_event(bool reference) const {
        return {.rank = mesh_.rank(),
                .ranks = mesh_.size(),
                .parameters = spec::parameter_count(input_.model),
                .steps = input_.trainer.max_steps,
                .tokens_per_step = input_.trainer.global_batch_size * input_.model.context_length,
                .threads = kernels::cpu_thread_count(),
                .kernels = reference ? "reference" : "cpu"};
    }

    LoopOutcome train(Trainer<float>& trainer) {
        std::unique_ptr<store::ObjectStore> store;
        std::optional<CheckpointKeeper<float>> keeper;
        if (!input_.checkpoint_uri.empty()) {
            store = store::open_store(input_.checkpoint_uri);
            keeper.emplace(typename CheckpointKeeper<float>::Parts{
                .trainer = trainer, .mesh = mesh_, .store = *store, .spec = input_.trainer});
        }
        return run_loop(trainer, {.spec = input_.trainer,
                                  .mesh = mesh_,
                                  .training = training_,
                                  .validation = validation_ ? &*validation_ : nullptr,
                                  .keeper = keeper ? &*keeper : nullptr,
                                  .reporter = reporter_,
                                  .stopwatch = stopwatch_,
                                  .clock = options_.clock,
                                  .stop_asked = options_.stop_asked});
    }

    const JobOptions& options_;
    const JobInput& input_;
    parallel::Mesh mesh_;
    Reporter& reporter_;
    Stopwatch stopwatch_;
    const ShardSamples training_;
    std::optional<ShardSamples> validation_;
};

// The first reason stands: a later one is mostly its consequence.
void write_failure_file(const fs::path& base_dir, const std::string& message) {
    const fs::path path = base_dir / "output" / "failure";
    const auto failed = run_guarded([&] {
        fs::create_directories(path.parent_path());
        if (!fs::exists(path)) write_file_atomic(path, message + "\n");
    });
    if (failed) log_error("cannot write the failure file: {}", failed->message());
}

}  // namespace

int run_job(const JobOptions& options) {
    std::optional<World> world;
    const auto failed = run_guarded([&] {
        const JobInput input = read_job_input(options.base_dir, options.checkpoint_uri);
        if (input.trainer.threads > 0) {
            kernels::use_cpu_threads(static_cast<int>(input.trainer.threads));
        }
        world.emplace(input, options);
        Reporter reporter(options.out, input.rank == 0);
        Job(options, input, world->comm(), reporter).run();
    });
    if (!failed) return 0;
    if (world) world->comm().abort(failed->message());
    write_failure_file(options.base_dir, failed->message());
    Reporter(options.out, false)
        .report(spec::ErrorEvent{.code = std::string(name(failed->code())),
                                 .message = failed->message()});
    log_error("{}", failed->what());
    return exit_code(failed->code());
}

}  // namespace gruca::train
