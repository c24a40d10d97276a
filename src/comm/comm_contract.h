// comm/comm_contract.h
//
// For comm_test.cpp only: the implementations its contract is held against. Those over Gloo come
// from the test file of the build that has it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/comm.h"

namespace gruca::comm {

struct Implementation {
    std::string name;
    // As comm::run_ranks.
    std::function<void(int size, const std::function<void(Comm&)>& body)> run_ranks;
};

std::vector<Implementation> gloo_implementations();

}  // namespace gruca::comm
