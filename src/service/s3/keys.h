// service/s3/keys.h
//
// How keys are written into documents: as they are, or percent-encoded when a client asks for what
// XML can hold (encoding-type=url).
//
// Pure; thread-safe.
#pragma once

#include <string>

#include "service/s3/request.h"

namespace gruca::service::s3 {

class Keys {
  public:
    explicit Keys(const Request& request);  // Throws InvalidArgument for another encoding.
    std::string operator()(const std::string& key) const;
    bool encodes() const { return encodes_; }

  private:
    const bool encodes_;
};

}  // namespace gruca::service::s3
