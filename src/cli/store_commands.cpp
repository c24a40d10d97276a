#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/store_copy.h"
#include "net/url.h"
#include "store/object_store.h"

namespace gruca::cli {
namespace {

std::unique_ptr<store::ObjectStore> open_buckets(Context& context, const Arguments& arguments) {
    const auto data_dir = choose_data_dir(arguments.find("--data-dir"), context.environment);
    if (!std::filesystem::exists(data_dir)) {
        throw Error(ErrorCode::not_found,
                    "there is no data directory yet; make one with: gruca service start (" +
                        data_dir.string() + ")");
    }
    return store::open_store(store::file_uri(data_dir / "store"));
}

std::vector<std::string> buckets(const store::ObjectStore& objects) {
    std::vector<std::string> names;
    store::ListRequest request{.keys_max = 1};
    for (;;) {
        const store::ListPage page = objects.list(request);
        if (page.objects.empty()) return names;
        const std::string& key = page.objects[0].key;
        const std::string bucket = key.substr(0, key.find('/'));
        if (bucket.size() < key.size()) {
            names.push_back(bucket);
            request.after = bucket + static_cast<char>('/' + 1);  // Beyond all of the bucket.
        } else {
            request.after = key;  // Not in a bucket.
        }
    }
}

Json object_json(const store::ObjectInfo& object) {
    return Json::object({{"Key", object.key.substr(object.key.find('/') + 1)},
                         {"Size", object.bytes},
                         {"ETag", object.etag},
                         {"LastModified", iso8601(object.modified)}});
}

std::string object_line(const store::ObjectInfo& object, const std::string& name) {
    const std::string modified = iso8601(object.modified);
    return fmt::format("{} {}  {:>10}  {}\n", modified.substr(0, 10), modified.substr(11, 8),
                       human_bytes(object.bytes), name);
}

int list_buckets(Context& context, const store::ObjectStore& objects, bool json) {
    Json answer = Json::array();
    for (const std::string& bucket : buckets(objects)) {
        if (!json) context.out << "s3://" << bucket << "/\n";
        answer.push(Json::object({{"Name", bucket}}));
    }
    if (json) print_json(context, Json::object({{"Buckets", answer}}));
    return 0;
}

int list_objects(Context& context, const Arguments& arguments) {
    const auto objects = open_buckets(context, arguments);
    const bool json = arguments.has("--json");
    const std::string where = arguments.operand(0);
    if (where.empty() || where == "s3://") return list_buckets(context, *objects, json);
    const net::S3Uri uri = net::parse_s3_uri(where);
    const std::string prefix = uri.bucket + "/" + uri.key;
    Json answer = Json::array();
    std::set<std::string> folders;
    objects->for_each(prefix, [&](const store::ObjectInfo& object) {
        const std::size_t slash = object.key.find('/', prefix.size());
        if (!arguments.has("--recursive") && slash != std::string::npos) {
            const std::string folder = object.key.substr(0, slash + 1);
            if (folders.insert(folder).second && !json) {
                context.out << fmt::format("{:>31}  s3://{}\n", "", folder);
            }
            return;
        }
        if (json) {
            answer.push(object_json(object));
        } else {
            context.out << object_line(object, "s3://" + object.key);
        }
    });
    if (!json) return 0;
    Json folder_list = Json::array();
    for (const std::string& folder : folders) {
        folder_list.push(Json::object({{"Prefix", folder.substr(uri.bucket.size() + 1)}}));
    }
    print_json(context, Json::object({{"Contents", answer}, {"CommonPrefixes", folder_list}}));
    return 0;
}

int copy(Context& context, const Arguments& arguments) {
    const auto objects = open_buckets(context, arguments);
    const CopyResult result = copy_objects(context, *objects,
                                           {.from = arguments.operand(0),
                                            .to = arguments.operand(1),
                                            .recursive = arguments.has("--recursive")});
    if (arguments.has("--json")) {
        print_json(context, Json::object({{"Objects", result.objects}, {"Bytes", result.bytes}}));
    } else {
        context.out << "copied " << result.objects
                    << (result.objects == 1 ? " object, " : " objects, ")
                    << human_bytes(result.bytes) << "\n";
    }
    return 0;
}

int remove_objects(Context& context, const Arguments& arguments) {
    const auto objects = open_buckets(context, arguments);
    const net::S3Uri uri = net::parse_s3_uri(arguments.operand(0));
    std::vector<std::string> keys;
    if (arguments.has("--recursive")) {
        std::string prefix = uri.bucket + "/" + uri.key;
        if (!prefix.ends_with('/')) prefix += "/";
        objects->for_each(prefix,
                          [&](const store::ObjectInfo& object) { keys.push_back(object.key); });
    } else if (!uri.key.empty() && objects->find(uri.bucket + "/" + uri.key)) {
        keys.push_back(uri.bucket + "/" + uri.key);
    }
    if (keys.empty()) {
        throw Error(ErrorCode::not_found,
                    "nothing is there (a prefix needs --recursive): " + uri.text());
    }
    for (const std::string& key : keys) {
        objects->remove(key);
        if (!arguments.has("--json")) context.out << "removed s3://" << key << "\n";
    }
    if (arguments.has("--json")) print_json(context, Json::object({{"Objects", keys.size()}}));
    return 0;
}

OptionShape recursive_option(const char* help) {
    return {.name = "--recursive", .help = help, .short_name = "-r"};
}

}  // namespace

std::vector<Command> store_commands() {
    return {
        {.shape = {.name = "gruca store ls",
                   .summary = "Lists buckets, or the objects below a prefix.",
                   .options = {recursive_option("Every object, however deep."), json_option(),
                               data_dir_option()},
                   .operands = {"[s3://bucket/prefix]"},
                   .example = "gruca store ls s3://out/"},
         .run = list_objects},
        {.shape = {.name = "gruca store cp",
                   .summary = "Copies a file into the store, an object out of it, or within it. A "
                              "target that ends with '/' keeps the name.",
                   .options = {recursive_option("A whole directory or prefix."), json_option(),
                               data_dir_option()},
                   .operands = {"<from>", "<to>"},
                   .example = "gruca store cp -r ./data s3://corpus/data"},
         .run = copy},
        {.shape = {.name = "gruca store rm",
                   .summary = "Removes an object, or with --recursive everything below a prefix.",
                   .options = {recursive_option("Everything below the prefix."), json_option(),
                               data_dir_option()},
                   .operands = {"<s3://bucket/key>"},
                   .example = "gruca store rm -r s3://out/hello"},
         .run = remove_objects},
    };
}

}  // namespace gruca::cli
