#include "checkpoint/plan.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "checkpoint/shape_json.h"

namespace gruca::checkpoint {
namespace {

using tensor::element_count;

// What the ranks together say about one tensor.
struct Known {
    Plan::Tensor tensor;
    std::map<Box, std::vector<std::size_t>> holders;  // By box, the ranks that have it.
};

[[noreturn]] void throw_invalid(const std::string& what, const std::string& tensor) {
    throw Error(ErrorCode::invalid_argument, what + ": tensor " + tensor);
}

void add(std::vector<Known>& known, std::map<std::string, std::size_t>& places, std::size_t rank,
         const Json& slice) {
    Plan::Tensor tensor{.name = slice.at("name").as_string(),
                        .dtype = tensor::parse_dtype(slice.at("dtype").as_string()),
                        .shape = shape_from(slice.at("shape"))};
    const Box box{.start = shape_from(slice.at("start")), .extent = shape_from(slice.at("extent"))};
    require_within(box, tensor.shape);
    const auto [place, is_new] = places.try_emplace(tensor.name, known.size());
    if (is_new) known.push_back({.tensor = tensor, .holders = {}});
    Known& one = known[place->second];
    if (one.tensor.dtype != tensor.dtype || one.tensor.shape != tensor.shape) {
        throw_invalid("ranks disagree about the type or shape", tensor.name);
    }
    auto& holders = one.holders[box];
    if (!holders.empty() && holders.back() == rank) {
        throw_invalid("a rank has a slice twice", tensor.name);
    }
    holders.push_back(rank);
}

void require_exact_cover(const Known& known) {
    std::int64_t covered = 0;
    for (auto one = known.holders.begin(); one != known.holders.end(); ++one) {
        covered += element_count(one->first.extent);
        for (auto other = known.holders.begin(); other != one; ++other) {
            if (intersection(one->first, other->first)) {
                throw_invalid(
                    "slices overlap, " + to_string(one->first) + " and " + to_string(other->first),
                    known.tensor.name);
            }
        }
    }
    if (covered != element_count(known.tensor.shape)) {
        throw_invalid("no rank has some part", known.tensor.name);
    }
}

}  // namespace

std::size_t Plan::bytes_of(const PlannedPiece& piece) const {
    return static_cast<std::size_t>(element_count(piece.box.extent)) *
           tensor::bytes_of(tensors[piece.tensor].dtype);
}

std::string describe(std::span<const SourceSlice> slices) {
    Json json = Json::array();
    for (const SourceSlice& slice : slices) {
        json.push(Json::object({{"name", slice.name},
                                {"dtype", tensor::name(slice.dtype)},
                                {"shape", shape_to_json(slice.shape)},
                                {"start", shape_to_json(slice.box.start)},
                                {"extent", shape_to_json(slice.box.extent)}}));
    }
    return json.dump();
}

Plan make_plan(const std::vector<std::string>& descriptions) {
    std::vector<Known> known;
    std::map<std::string, std::size_t> places;
    for (std::size_t rank = 0; rank < descriptions.size(); ++rank) {
        const Json slices = Json::parse(descriptions[rank]);
        for (const Json& slice : slices.as_array()) add(known, places, rank, slice);
    }

    Plan plan;
    plan.of_rank.resize(descriptions.size());
    std::vector<std::size_t> load(descriptions.size());
    for (const Known& one : known) {
        require_exact_cover(one);
        const auto elements_max =
            static_cast<std::int64_t>(kPieceBytesMax / tensor::bytes_of(one.tensor.dtype));
        for (const auto& [box, holders] : one.holders) {
            for (Box& piece : cut(box, elements_max)) {
                // The least loaded of those who have it, the lowest rank of several.
                const std::size_t writer = *std::min_element(
                    holders.begin(), holders.end(),
                    [&](std::size_t a, std::size_t b) { return load[a] < load[b]; });
                plan.of_rank[writer].push_back(
                    {.tensor = plan.tensors.size(), .within = box, .box = std::move(piece)});
                load[writer] += static_cast<std::size_t>(
                                    element_count(plan.of_rank[writer].back().box.extent)) *
                                tensor::bytes_of(one.tensor.dtype);
            }
        }
        plan.tensors.push_back(one.tensor);
    }
    return plan;
}

}  // namespace gruca::checkpoint
