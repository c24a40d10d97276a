#include "service/state/database.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"

namespace gruca::service {
namespace {

constexpr std::int64_t kInputsBetweenPrunes = 1000;

// The columns before the JSON lie in the leaves of the tree, so a scan does not read the JSON.
constexpr const char* kJobsTable = R"(
    CREATE TABLE jobs (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, arn TEXT NOT NULL,
        instances INTEGER NOT NULL, status TEXT NOT NULL, secondary TEXT NOT NULL,
        over INTEGER NOT NULL, created_ms INTEGER NOT NULL, modified_ms INTEGER NOT NULL,
        training_started_ms INTEGER, ended_ms INTEGER, json TEXT NOT NULL) WITHOUT ROWID;
    CREATE INDEX jobs_live ON jobs (number) WHERE over = 0;
)";

constexpr const char* kOtherTables = R"(
    CREATE TABLE inputs (seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL,
        json TEXT NOT NULL);
    CREATE TABLE keys (access_key TEXT PRIMARY KEY, secret TEXT NOT NULL, kind TEXT NOT NULL,
        owner TEXT NOT NULL, session_token TEXT NOT NULL, expires_ms INTEGER) WITHOUT ROWID;
    CREATE INDEX keys_by_owner ON keys (kind, owner);
)";

// Version 1 had a job's name, number and JSON.
constexpr const char* kJobsFromVersion1 = R"(
    INSERT INTO jobs SELECT name, number, json ->> '$.spec.arn', json ->> '$.spec.instance_count',
        json ->> '$.status', json ->> '$.secondary',
        json ->> '$.status' IN ('Completed', 'Failed', 'Stopped'), json ->> '$.created_ms',
        json ->> '$.modified_ms', json ->> '$.training_started_ms', json ->> '$.ended_ms', json
        FROM jobs_1;
    DROP TABLE jobs_1;
)";

constexpr const char* kSummaryColumns =
    "name, number, arn, instances, status, secondary, over, created_ms, modified_ms, "
    "training_started_ms, ended_ms";
constexpr const char* kPutJob = R"(
    INSERT INTO jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET
        number = excluded.number, arn = excluded.arn, instances = excluded.instances,
        status = excluded.status, secondary = excluded.secondary, over = excluded.over,
        created_ms = excluded.created_ms, modified_ms = excluded.modified_ms,
        training_started_ms = excluded.training_started_ms, ended_ms = excluded.ended_ms,
        json = excluded.json
)";
constexpr int kJsonColumn = 11;  // Behind those.

ErrorCode code_of(int sqlite_code) {
    switch (sqlite_code & 0xff) {
        case SQLITE_FULL:
        case SQLITE_NOMEM:
            return ErrorCode::resource_exhausted;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
            return ErrorCode::unavailable;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
            return ErrorCode::data_loss;
        case SQLITE_PERM:
        case SQLITE_AUTH:
        case SQLITE_READONLY:
            return ErrorCode::permission_denied;
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
            return ErrorCode::unavailable;
        default:
            return ErrorCode::internal;
    }
}

KeyKind key_kind_from(const std::string& text) {
    for (const KeyKind kind : {KeyKind::admin, KeyKind::node, KeyKind::job}) {
        if (text == name(kind)) return kind;
    }
    throw Error(ErrorCode::data_loss, "unknown kind of key in the database: " + text);
}

[[noreturn]] void fail(sqlite3* connection, std::string_view activity) {
    throw Error(code_of(sqlite3_extended_errcode(connection)),
                fmt::format("the database cannot {}: {}", activity, sqlite3_errmsg(connection)));
}

}  // namespace

const char* name(KeyKind kind) {
    constexpr std::array kNames = {"admin", "node", "job"};
    return kNames.at(static_cast<std::size_t>(kind));
}

// One prepared statement, finalised on destruction.
class Database::Statement {
  public:
    Statement(const Connection& connection, const std::string& sql)
        : connection_(connection.get()) {
        if (sqlite3_prepare_v2(connection_, sql.c_str(), -1, &handle_, nullptr) != SQLITE_OK) {
            fail(connection_, "prepare a statement");
        }
    }
    ~Statement() { sqlite3_finalize(handle_); }
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

    // The text must live until the next run().
    Statement& text(int index, const std::string& value) {
        sqlite3_bind_text(handle_, index, value.data(), static_cast<int>(value.size()),
                          SQLITE_STATIC);
        return *this;
    }
    Statement& integer(int index, std::int64_t value) {
        sqlite3_bind_int64(handle_, index, value);
        return *this;
    }
    Statement& null(int index) {
        sqlite3_bind_null(handle_, index);
        return *this;
    }
    Statement& time(int index, const std::optional<TimePoint>& value) {
        return value ? integer(index, to_ms(*value)) : null(index);
    }
    void run() {
        if (sqlite3_step(handle_) != SQLITE_DONE) {
            sqlite3_reset(handle_);
            fail(connection_, "write");
        }
        sqlite3_reset(handle_);
    }
    bool next_row() {
        const int code = sqlite3_step(handle_);
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) fail(connection_, "read");
        return false;
    }
    std::string column_text(int index) const {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(handle_, index));
        return text == nullptr
                   ? std::string()
                   : std::string(text,
                                 static_cast<std::size_t>(sqlite3_column_bytes(handle_, index)));
    }
    std::int64_t column_integer(int index) const { return sqlite3_column_int64(handle_, index); }
    std::optional<TimePoint> column_time(int index) const {
        if (sqlite3_column_type(handle_, index) == SQLITE_NULL) return std::nullopt;
        return time_from_ms(column_integer(index));
    }
    JobSummary summary() const {  // Of the first columns.
        return {.name = column_text(0),
                .number = column_integer(1),
                .arn = column_text(2),
                .instances = static_cast<int>(column_integer(3)),
                .status = column_text(4),
                .secondary = column_text(5),
                .over = column_integer(6) != 0,
                .created = time_from_ms(column_integer(7)),
                .modified = time_from_ms(column_integer(8)),
                .training_started = column_time(9),
                .ended = column_time(10)};
    }

  private:
    sqlite3* const connection_;
    sqlite3_stmt* handle_ = nullptr;
};

void Database::Close::operator()(sqlite3* connection) const {
    const int code = sqlite3_close(connection);
    CHECK(code == SQLITE_OK, "a statement outlives its database: {}", code);
}

Database::Connection Database::open() const {
    sqlite3* raw = nullptr;
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    const int code = sqlite3_open_v2(options_.path.c_str(), &raw, flags, nullptr);
    Connection connection(raw);
    if (code != SQLITE_OK) {
        throw Error(ErrorCode::unavailable,
                    fmt::format("cannot open the database: {}: {}", sqlite3_errmsg(raw),
                                options_.path.string()));
    }
    sqlite3_extended_result_codes(raw, 1);
    sqlite3_busy_timeout(raw, static_cast<int>(options_.busy_timeout.count()));
    return connection;
}

Database::Database(const DatabaseOptions& options) : options_(options) {
    // Created here, so that no moment exists at which others may read it.
    open_file(options.path, O_RDWR | O_CREAT, 0600);
    try {
        connection_ = open();
        execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
        migrate();
        reader_ = open();
    } catch (Error& error) {
        error.add_context("opening the service's database " + options.path.string());
        throw;
    }
}

Database::~Database() = default;

void Database::migrate() {
    std::int64_t version = 0;
    {
        Statement query(connection_, "PRAGMA user_version");
        if (query.next_row()) version = query.column_integer(0);
    }
    if (version > kSchemaVersion) {
        throw Error(ErrorCode::precondition_failed,
                    fmt::format("the database was written by a newer gruca: run that version, or "
                                "give this one another --data-dir: schema {}, this program knows "
                                "up to {}",
                                version, kSchemaVersion));
    }
    std::string steps;
    if (version == 0) steps = std::string(kJobsTable) + kOtherTables;
    if (version == 1) {
        steps = std::string("ALTER TABLE jobs RENAME TO jobs_1;") + kJobsTable + kJobsFromVersion1;
    }
    if (steps.empty()) return;
    execute(
        fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version = {}; COMMIT;", steps, kSchemaVersion)
            .c_str());
}

void Database::commit(const Changes& changes) {
    const std::lock_guard lock(mutex_);
    execute("BEGIN IMMEDIATE");
    try {
        apply(changes);
        execute("COMMIT");
    } catch (const Error&) {
        // SQLite has rolled back by itself after some failures; then there is nothing to undo.
        if (sqlite3_get_autocommit(connection_.get()) == 0) {
            sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
        }
        throw;
    }
}

void Database::apply(const Changes& changes) {
    Statement add_input(connection_, "INSERT INTO inputs (at_ms, json) VALUES (?, ?)");
    for (const InputRow& input : changes.inputs) {
        add_input.integer(1, to_ms(input.at)).text(2, input.json).run();
    }
    Statement put_job(connection_, kPutJob);
    for (const JobRow& job : changes.jobs) {
        const JobSummary& summary = job.summary;
        put_job.text(1, summary.name).integer(2, summary.number).text(3, summary.arn);
        put_job.integer(4, summary.instances).text(5, summary.status).text(6, summary.secondary);
        put_job.integer(7, summary.over ? 1 : 0).time(8, summary.created);
        put_job.time(9, summary.modified).time(10, summary.training_started);
        put_job.time(11, summary.ended).text(12, job.json).run();
    }
    Statement put_key(connection_, "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)");
    for (const KeyRecord& key : changes.keys) {
        const std::string kind = name(key.kind);
        put_key.text(1, key.access_key).text(2, key.secret_key).text(3, kind);
        put_key.text(4, key.owner).text(5, key.session_token).time(6, key.expires).run();
    }
    Statement forget(connection_, "DELETE FROM keys WHERE kind = ? AND owner = ?");
    for (const KeyOwner& owner : changes.forgotten) {
        const std::string kind = name(owner.kind);
        forget.text(1, kind).text(2, owner.owner).run();
    }
    inputs_since_prune_ += static_cast<std::int64_t>(changes.inputs.size());
    if (inputs_since_prune_ >= kInputsBetweenPrunes) prune_inputs();
}

void Database::prune_inputs() {
    Statement prune(connection_,
                    "DELETE FROM inputs WHERE seq <= (SELECT max(seq) FROM inputs) - ?");
    prune.integer(1, options_.inputs_kept_max).run();
    inputs_since_prune_ = 0;
}

void Database::for_each_summary(const std::function<void(JobSummary)>& visit) const {
    const std::lock_guard lock(mutex_);
    Statement query(connection_, fmt::format("SELECT {} FROM jobs", kSummaryColumns));
    while (query.next_row()) visit(query.summary());
}

void Database::for_each_live_job(const std::function<void(const JobRow&)>& visit) const {
    const std::lock_guard lock(mutex_);
    Statement query(
        connection_,
        fmt::format("SELECT {}, json FROM jobs WHERE over = 0 ORDER BY number", kSummaryColumns));
    while (query.next_row()) {
        visit({.summary = query.summary(), .json = query.column_text(kJsonColumn)});
    }
}

std::int64_t Database::last_job_number() const {
    const std::lock_guard lock(mutex_);
    Statement query(connection_, "SELECT max(number) FROM jobs");
    return query.next_row() ? query.column_integer(0) : 0;
}

std::optional<std::string> Database::find_job(const std::string& name) const {
    const std::lock_guard lock(reader_mutex_);
    Statement query(reader_, "SELECT json FROM jobs WHERE name = ?");
    query.text(1, name);
    if (!query.next_row()) return std::nullopt;
    return query.column_text(0);
}

std::vector<KeyRecord> Database::keys() const {
    const std::lock_guard lock(mutex_);
    Statement query(connection_,
                    "SELECT access_key, secret, kind, owner, session_token, expires_ms FROM keys");
    std::vector<KeyRecord> found;
    while (query.next_row()) {
        KeyRecord key{.access_key = query.column_text(0),
                      .secret_key = query.column_text(1),
                      .kind = key_kind_from(query.column_text(2)),
                      .owner = query.column_text(3),
                      .session_token = query.column_text(4),
                      .expires = query.column_time(5)};
        found.push_back(std::move(key));
    }
    return found;
}

std::vector<InputRow> Database::last_inputs(std::int64_t count) const {
    const std::lock_guard lock(mutex_);
    Statement query(connection_,
                    "SELECT at_ms, json FROM (SELECT * FROM inputs ORDER BY seq DESC LIMIT ?) "
                    "ORDER BY seq");
    query.integer(1, count);
    std::vector<InputRow> rows;
    while (query.next_row()) {
        rows.push_back({.at = time_from_ms(query.column_integer(0)), .json = query.column_text(1)});
    }
    return rows;
}

void Database::execute(const char* sql) const {
    if (sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
        fail(connection_.get(), "execute");
    }
}

}  // namespace gruca::service
