// cli/aws_api.h
//
// The service's API over the network, called with the admin key of the installation.
#pragma once

#include <functional>
#include <memory>

#include "base/clock.h"
#include "cli/context.h"

namespace gruca::cli {

// `cancelled` ends a call, and the waiting between attempts; may be empty.
std::unique_ptr<Api> connect_to(const Installation& service, bool patient, const Clock& clock,
                                std::function<bool()> cancelled);

}  // namespace gruca::cli
