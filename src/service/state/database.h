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

// What lists and searches need of a job, kept beside its JSON so that no list reads that.
struct JobSummary {
    std::string name;
    std::int64_t number = 0;  // Order of creation.
    std::string arn = {};
    int instances = 1;
    std::string status = {};     // "InProgress", …
    std::string secondary = {};  // "Starting", …
    bool over = false;           // In its one terminal state, with nothing left of it.
    TimePoint created = {};
    TimePoint modified = {};
    std::optional<TimePoint> training_started = {};
    std::optional<TimePoint> ended = {};

    friend bool operator==(const JobSummary&, const JobSummary&) = default;
};

struct JobRow {
    JobSummary summary;
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
    static constexpr int kSchemaVersion = 2;

    // Opens or creates the file. A schema newer than this program's is refused with
    // precondition_failed, naming both versions; a file that is no database with data_loss.
    explicit Database(const DatabaseOptions& options);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    // All or nothing. Throws resource_exhausted on a full disk; the file is then as before.
    void commit(const Changes& changes);

    // Every job as a summary, in no particular order; and whole, by number, those not over.
    void for_each_summary(const std::function<void(JobSummary)>& visit) const;
    void for_each_live_job(const std::function<void(const JobRow&)>& visit) const;
    std::int64_t last_job_number() const;  // 0 when there was none yet.
    // The job's JSON. Does not wait for a commit in progress, and shows what was there before it.
    std::optional<std::string> find_job(const std::string& name) const;
    std::vector<KeyRecord> keys() const;
    std::vector<InputRow> last_inputs(std::int64_t count) const;  // Oldest first.

  private:
    class Statement;

    void migrate();
    void apply(const Changes& changes);
    void prune_inputs();
    void execute(const char* sql) const;

    struct Close {
        void operator()(sqlite3* connection) const;
    };
    using Connection = std::unique_ptr<sqlite3, Close>;
    Connection open() const;

    const DatabaseOptions options_;
    mutable std::mutex mutex_;  // Guards the connection and the count.
    Connection connection_;
    std::int64_t inputs_since_prune_ = 0;
    mutable std::mutex reader_mutex_;  // Guards the second connection, which only reads.
    Connection reader_;
};

}  // namespace gruca::service
