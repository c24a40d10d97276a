#include "train/checkpoint_keeper.h"

#include <fmt/format.h>

#include "base/boundary.h"
#include "base/log.h"

namespace gruca::train {

template <class Real>
CheckpointKeeper<Real>::CheckpointKeeper(const Parts& parts)
    : trainer_(parts.trainer), mesh_(parts.mesh), store_(parts.store), spec_(parts.spec) {
    const auto add = [&](const char* kind, model::ParameterSet<Real>& set) {
        for (std::size_t p = 0; p < set.table().size(); ++p) {
            const spec::Parameter& parameter = set.table()[p];
            tensor::Shape shape = {parameter.columns};
            if (parameter.is_matrix) shape = {parameter.rows, parameter.columns};
            numbers_.push_back({.name = fmt::format("{}/{}", kind, parameter.name),
                                .shape = std::move(shape),
                                .values = set.of(p)});
        }
    };
    add("weights", trainer_.weights());
    add("first_moment", trainer_.optimizer().first_moment());
    add("second_moment", trainer_.optimizer().second_moment());
}

template <class Real>
Json CheckpointKeeper<Real>::meta() const {
    const auto& progress = trainer_.progress();
    return Json::object({{"model", trainer_.config().to_json()},
                         {"step", progress.step},
                         {"updates", trainer_.optimizer().updates()},
                         {"samples", progress.samples},
                         {"tokens", progress.tokens},
                         {"bad_steps", progress.bad_steps},
                         {"seed", spec_.seed}});
}

template <class Real>
void CheckpointKeeper<Real>::require_same_model(const Json& saved) const {
    const Json ours = Json::parse(trainer_.config().to_json().dump());  // As it was saved.
    const Json& theirs = saved.at("model");
    for (const auto& [key, value] : ours.as_object()) {
        const Json* other = theirs.find(key);
        if (other != nullptr && *other == value) continue;
        throw Error(ErrorCode::precondition_failed,
                    fmt::format("the checkpoint is of another model; train it on with its own "
                                "hyperparameters, or start anew with another checkpoint location: "
                                "{} is {} there and {} here",
                                key, other == nullptr ? "absent" : other->dump(), value.dump()));
    }
}

template <class Real>
bool CheckpointKeeper<Real>::restore() {
    // The newest checkpoint's facts first: of another model, nothing is loaded.
    const auto facts = checkpoint::load_newest(store_, "", {}, mesh_.world());
    if (!facts) return false;
    require_same_model(facts->meta);

    std::vector<checkpoint::TargetSlice> targets;
    for (const NamedNumbers& one : numbers_) {
        targets.push_back({.name = one.name,
                           .dtype = tensor::dtype_of<Real>,
                           .shape = one.shape,
                           .box = checkpoint::whole(one.shape),
                           .into = std::as_writable_bytes(one.values)});
    }
    const auto loaded = checkpoint::load_newest(store_, "", targets, mesh_.world());
    if (!loaded) throw Error(ErrorCode::data_loss, "the checkpoint disappeared while being read");
    for (const std::string& damage : loaded->damaged) {
        log_warning("a newer checkpoint cannot be used: {}", damage);
    }
    const Json& saved = loaded->meta;
    require_same_model(saved);
    if (saved.at("seed").as_int() != spec_.seed) {
        log_warning("the seed differs from the checkpoint's: samples come in another order; {} {}",
                    spec_.seed, saved.at("seed").as_int());
    }
    trainer_.progress() = {.step = saved.at("step").as_int(),
                           .samples = saved.at("samples").as_int(),
                           .tokens = saved.at("tokens").as_int(),
                           .bad_steps = saved.at("bad_steps").as_int()};
    trainer_.optimizer().set_updates(saved.at("updates").as_int());
    return true;
}

template <class Real>
std::int64_t CheckpointKeeper<Real>::save() {
    std::int64_t bytes = 0;
    checkpoint::Contents contents{.step = trainer_.progress().step, .slices = {}, .meta = meta()};
    for (const NamedNumbers& one : numbers_) {
        contents.slices.push_back({.name = one.name,
                                   .dtype = tensor::dtype_of<Real>,
                                   .shape = one.shape,
                                   .box = checkpoint::whole(one.shape),
                                   .bytes = std::as_bytes(one.values)});
        bytes += std::ssize(contents.slices.back().bytes);
    }
    checkpoint::save(store_, "", contents, mesh_.world());
    if (mesh_.is_first()) {
        const auto failed = run_guarded([&] {
            checkpoint::prune(store_, "", contents.step, static_cast<int>(spec_.checkpoints_kept));
        });
        if (failed) log_warning("cannot remove old checkpoints: {}", failed->message());
    }
    return bytes;
}

template class CheckpointKeeper<float>;
template class CheckpointKeeper<double>;

}  // namespace gruca::train
