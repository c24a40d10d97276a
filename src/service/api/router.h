// service/api/router.h
//
// The service's one entrance: finds out which protocol a request speaks, who signed it, which
// operation it wants and whether that caller may, and hands it over. Nothing is answered to an
// unsigned request but that it is unsigned. Every answer has an x-amzn-RequestId.
//
//   admin   everything but the calls of nodes
//   job     who it is, and DescribeTrainingJob of itself
//   node    the calls of nodes, for itself
//
// Thread-safe.
#pragma once

#include "service/api/call.h"

namespace gruca::service::api {

class Router {
  public:
    // `keys` outlives the router, as what the context names does.
    Router(Context context, const KeyRing& keys) : context_(std::move(context)), keys_(keys) {}

    void handle(const net::HttpRequest& request, const net::HttpReply& reply) const;

  private:
    struct Route;

    Outcome authenticate(const net::HttpRequest& request, const Route& route, Caller& caller) const;
    void dispatch(const net::HttpRequest& request, const Route& route, Caller caller,
                  const Responder& responder) const;

    const Context context_;
    const KeyRing& keys_;
};

}  // namespace gruca::service::api
