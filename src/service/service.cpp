#include "service/service.h"

#include <fmt/format.h>

#include "base/boundary.h"
#include "base/log.h"
#include "net/connection_limit.h"

namespace gruca::service {
namespace {

constexpr std::size_t kHttpThreads = 8;
static_assert(kLogAppendsMax + kLogSyncsMax < kHttpThreads, "a slow disk takes every thread");
constexpr const char* kEveryAddress = "0.0.0.0";
const KeyOwner kAdmin{.kind = KeyKind::admin, .owner = "admin"};

control::Settings control_settings(const ServiceOptions& options) {
    control::Settings settings;
    settings.slots = options.settings.slots;
    settings.cores = options.cores;
    settings.stop_grace = std::chrono::seconds(options.settings.stop_grace);
    if (options.network) {
        settings.addresses = spec::parse_subnet(options.network->subnet).value();
        settings.isolates = true;
    }
    return settings;
}

const ServiceSettings& checked(const ServiceSettings& settings) {
    require_valid(settings);
    return settings;
}

}  // namespace

Service::Service(const ServiceOptions& options, const Clock& clock, Random& random)
    : clock_(clock),
      random_(random),
      settings_(checked(options.settings)),
      data_dir_(settings_.data_dir),
      database_({.path = data_dir_.database()}),
      keys_(database_.keys()),
      logs_(data_dir_.logs()),
      store_(data_dir_.store(), clock.now()),
      jobs_(database_),
      core_({.database = database_,
             .keys = keys_,
             .jobs = jobs_,
             .logs = logs_,
             .store = store_,
             .clock = clock_,
             .random = random_},
            control_settings(options)),
      router_({.core = core_,
               .jobs = jobs_,
               .logs = logs_,
               .clock = clock_,
               .random = random_,
               .account = {.region = settings_.region, .account = settings_.account}},
              keys_),
      s3_({.store = data_dir_.store(),
           .uploads = data_dir_.uploads(),
           .region = settings_.region,
           .account = settings_.account},
          keys_, clock_, random_) {
    net::HttpServerOptions listen;
    listen.address = settings_.address;
    listen.port = static_cast<std::uint16_t>(settings_.port);
    listen.threads = kHttpThreads;
    listen.connections_max = net::make_room_for_connections(listen.connections_max);
    listen.streams.selects = s3::is_for_objects;
    listen.streams.handler = [this](net::HttpStream& stream) { s3_.handle(stream); };
    listen.streams.busy = s3::S3Service::busy();
    admin_key();
    server_ = listen_as(listen);
    data_dir_.keep_port(server_->port());
    endpoint_ = fmt::format("http://{}:{}", settings_.address, server_->port());
    if (options.network && settings_.address != kEveryAddress) {
        server_->listen(options.network->gateway);
    }
    core_.start(core_options(options), [&](NodeListener listener) {
        return options.make_cluster(data_dir_.nodes(), std::move(listener));
    });
    publish_credentials(options);
    data_dir_.announce(
        {.endpoint = endpoint_, .region = settings_.region, .account = settings_.account});
    log_info("listening on {}, data in {}", endpoint_, data_dir_.path().string());
}

// A free port that was chosen once is taken again: the agents and programs of jobs that run on know
// it.
std::unique_ptr<net::HttpServer> Service::listen_as(net::HttpServerOptions listen) {
    const auto handler = [this](net::HttpRequest request, net::HttpReply reply) {
        router_.handle(request, reply);
    };
    if (listen.port == 0) {
        listen.port = data_dir_.last_port();
        std::unique_ptr<net::HttpServer> server;
        const std::optional<Error> taken =
            run_guarded([&] { server = std::make_unique<net::HttpServer>(listen, handler); });
        if (!taken) return server;
        log_warning("jobs that run since the last start are lost, as its port is not free: {}",
                    taken->what());
        listen.port = 0;
    }
    return std::make_unique<net::HttpServer>(listen, handler);
}

Service::~Service() {
    stop();
}

void Service::stop() {
    if (!server_) return;
    server_->stop();
    core_.stop();
    server_.reset();
    data_dir_.withdraw();
}

KeyRecord Service::admin_key() {
    if (const auto key = keys_.find_of(kAdmin)) return *key;
    const KeyRecord key = make_key(random_, kAdmin.kind, kAdmin.owner);
    database_.commit({.keys = {key}});
    keys_.put(key);
    return key;
}

CoreOptions Service::core_options(const ServiceOptions& options) const {
    CoreOptions core;
    core.heartbeat_lost = std::chrono::seconds(settings_.heartbeat_lost);
    core.node_config.endpoint = endpoint_;
    core.node_config.region = settings_.region;
    core.node_config.store_uri = "file://" + data_dir_.store().string();
    core.node_config.network = options.network;
    if (options.network) {
        core.node_config.network->endpoint =
            fmt::format("http://{}:{}", options.network->gateway, server_->port());
    }
    constexpr std::uint64_t kMebibyte = 1u << 20;
    core.node_config.limits = {
        .memory_bytes = kMebibyte * static_cast<std::uint64_t>(settings_.job_memory),
        .memory_reserve_bytes = kMebibyte * static_cast<std::uint64_t>(settings_.memory_reserve),
        .processes = settings_.job_processes};
    core.node_config.hidden_paths = options.hidden_paths;
    core.node_config.hidden_paths.push_back(data_dir_.path().string());
    return core;
}

void Service::publish_credentials(const ServiceOptions& options) {
    const KeyRecord key = admin_key();
    const auto ini = with_section(
        "", kProfileName, key.access_key,
        {{"aws_access_key_id", key.access_key}, {"aws_secret_access_key", key.secret_key}});
    write_file_atomic(data_dir_.credentials(), ini.value_or(""), {.mode = 0600});
    if (!settings_.aws_profile) return;
    const ProfileOutcome outcome = install_profile(options.aws_files, {.access_key = key.access_key,
                                                                       .secret_key = key.secret_key,
                                                                       .region = settings_.region,
                                                                       .endpoint = endpoint_});
    if (outcome == ProfileOutcome::written) {
        log_info("wrote the AWS profile `gruca` to {} and {}",
                 options.aws_files.credentials.string(), options.aws_files.config.string());
    } else if (outcome == ProfileOutcome::foreign) {
        log_warning(
            "{} or {} has a profile `gruca` that this service did not write; it stays. To "
            "use this service, rename or delete that profile and start again, or set "
            "AWS_SHARED_CREDENTIALS_FILE to {} and pass --endpoint-url {}",
            options.aws_files.credentials.string(), options.aws_files.config.string(),
            data_dir_.credentials().string(), endpoint_);
    } else if (outcome == ProfileOutcome::not_a_file) {
        log_warning(
            "{} or {} is not a file, so the AWS profile `gruca` is not written. To use this "
            "service, set AWS_SHARED_CREDENTIALS_FILE to {} and pass --endpoint-url {}",
            options.aws_files.credentials.string(), options.aws_files.config.string(),
            data_dir_.credentials().string(), endpoint_);
    }
}

}  // namespace gruca::service
