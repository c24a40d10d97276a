// service/state/database.h
//
// What the service must not forget: jobs, the inputs that made them what they are, and access keys,
// in one SQLite file. A commit is one transaction and is on disk when it returns, so that an answer
// given after it is true also after a power cut. Layout: docs/formats/database.md.
//
// Two writers never meet: the service holds a lock on its data directory.
//
// Thread-safe; commits queue behind one another.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

struct sqlite3;

namespace gruca::service {

enum class KeyKind { admin, node, job };

const char* name(KeyKind kind);

// An access key and whose it is: "admin", a node's id, or a job's name.
struct KeyRecord {
    std::string access_key;
    std::string secret_key;
    KeyKind kind = KeyKind::admin;
    std::string owner;
    std::string session_token = {};  // Only jobs' temporary credentials have one.
    std::optional<TimePoint> expires = {};

    friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

struct JobRow {
    std::string name;
    std::int64_t number = 0;
    std::string json;
};

struct InputRow {
    TimePoint at = {};
    std::string json;
};

struct KeyOwner {
    KeyKind kind = KeyKind::admin;
    std::string owner;
};

struct Changes {
    std::vector<InputRow> inputs = {};
    std::vector<JobRow> jobs = {};         // Inserted or replaced, by name.
    std::vector<KeyRecord> keys = {};      // Inserted or replaced, by access key.
    std::vector<KeyOwner> forgotten = {};  // Every key of these owners is deleted.

    bool empty() const {
        return inputs.empty() && jobs.empty() && keys.empty() && forgotten.empty();
    }
};

struct DatabaseOptions {
    std::filesystem::path path;
    std::chrono::milliseconds busy_timeout = std::chrono::seconds(5);  // While somebody copies it.
    std::int64_t inputs_kept_max =
        100'000;  // Older inputs are deleted, about a thousand at a time.
};

class Database {
  public:
    static constexpr int kSchemaVersion = 1;

    // Opens or creates the file. A schema newer than this program's is refused with
    // precondition_failed, naming both versions; a file that is no database with data_loss.
    explicit Database(const DatabaseOptions& options);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // All or nothing. Throws resource_exhausted on a full disk; the file is then as before.
    void commit(const Changes& changes);

    void for_each_job(const std::function<void(const JobRow&)>& visit) const;
    std::vector<KeyRecord> keys() const;
    std::vector<InputRow> last_inputs(std::int64_t count) const;  // Oldest first.

  private:
    class Statement;

    void migrate();
    void apply(const Changes& changes);
    void prune_inputs();
    void execute(const char* sql) const;
    [[noreturn]] void fail(std::string_view activity) const;

    const DatabaseOptions options_;
    mutable std::mutex mutex_;  // Guards the connection and the count.
    sqlite3* connection_ = nullptr;
    std::int64_t inputs_since_prune_ = 0;
};

}  // namespace gruca::service
