// parallel/mesh.h
//
// How the ranks of a job are laid out over the work, and what they exchange because of it. A mesh
// has axes; the ranks along one axis share one kind of work:
//
//   data   every rank has the whole model and its own samples; gradients are summed
//
// The data axis is the only one so far, so it has all ranks. `model` and `train` ask the mesh,
// never the Comm, which part is theirs: a further axis (tensor, pipeline, shard) becomes a further
// member here, with the collectives that stand in the model's code where bytes leave the rank.
//
// Thread-compatible; the Comm outlives the mesh.
#pragma once

#include "comm/comm.h"

namespace gruca::parallel {

class Mesh final {
  public:
    explicit Mesh(comm::Comm& world) : world_(world) {}

    int rank() const { return world_.rank(); }
    int size() const { return world_.size(); }
    // The rank that speaks for all: prints, writes what exists once.
    bool is_first() const { return rank() == 0; }

    int data_rank() const { return world_.rank(); }
    int data_size() const { return world_.size(); }

    comm::Comm& world() { return world_; }
    comm::Comm& data() { return world_; }

  private:
    comm::Comm& world_;
};

}  // namespace gruca::parallel
