// service/service.h
//
// The whole service over one data directory: its rooms built and joined, listening when this
// exists. gruca-service is this, a signal to wait for, and nothing else.
//
// On the first start an admin key is made. It is written to <data-dir>/credentials and, unless the
// settings say otherwise, to the profile `gruca` of the user's AWS files.
//
// Owned by one thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "net/http_server.h"
#include "service/api/router.h"
#include "service/auth/aws_profile.h"
#include "service/core.h"
#include "service/data_dir.h"
#include "service/s3/s3_service.h"
#include "service/settings.h"
#include "store/local_store.h"

namespace gruca::service {

struct ServiceOptions {
    ServiceSettings settings;
    AwsFiles aws_files;
    // Where nodes come from, given a directory for them.
    std::function<std::unique_ptr<cluster::Cluster>(const std::filesystem::path&, NodeListener)>
        make_cluster;
    int cores = 1;                                  // Of this machine.
    std::optional<spec::NodeNetwork> network = {};  // Of jobs; the endpoint is filled in.
    std::vector<std::string> hidden_paths = {};     // From jobs, besides the service's own.
};

class Service {
  public:
    // `clock` and `random` outlive the service. Throws when the data directory is in use, the
    // database cannot be read, or the port is taken.
    Service(const ServiceOptions& options, const Clock& clock, Random& random);
    ~Service();
    Service(const Service&) = delete;
    Service& operator=(const Service&) = delete;

    const std::string& endpoint() const { return endpoint_; }
    Core& core() { return core_; }

    // Answers what is being asked, then ends. Jobs run on.
    void stop();

  private:
    KeyRecord admin_key();
    std::unique_ptr<net::HttpServer> listen_as(net::HttpServerOptions listen);
    CoreOptions core_options(const ServiceOptions& options) const;
    void publish_credentials(const ServiceOptions& options);

    const Clock& clock_;
    Random& random_;
    const ServiceSettings settings_;
    const DataDir data_dir_;
    Database database_;
    KeyRing keys_;
    LogStore logs_;
    store::LocalStore store_;
    JobBoard jobs_;
    Core core_;
    const api::Router router_;
    s3::S3Service s3_;
    std::unique_ptr<net::HttpServer> server_;
    std::string endpoint_;
};

}  // namespace gruca::service
