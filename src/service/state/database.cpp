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

constexpr const char* kSchema = R"(
    CREATE TABLE jobs (name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, json TEXT NOT NULL)
        WITHOUT ROWID;
    CREATE TABLE inputs (seq INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL,
        json TEXT NOT NULL);
    CREATE TABLE keys (access_key TEXT PRIMARY KEY, secret TEXT NOT NULL, kind TEXT NOT NULL,
        owner TEXT NOT NULL, session_token TEXT NOT NULL, expires_ms INTEGER) WITHOUT ROWID;
    CREATE INDEX keys_by_owner ON keys (kind, owner);
)";

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

}  // namespace

const char* name(KeyKind kind) {
    constexpr std::array kNames = {"admin", "node", "job"};
    return kNames.at(static_cast<std::size_t>(kind));
}

// One prepared statement, finalised on destruction.
class Database::Statement {
  public:
    Statement(const Database& database, const char* sql) : database_(database) {
        if (sqlite3_prepare_v2(database.connection_, sql, -1, &handle_, nullptr) != SQLITE_OK) {
            database.fail("prepare a statement");
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
    void run() {
        if (sqlite3_step(handle_) != SQLITE_DONE) {
            sqlite3_reset(handle_);
            database_.fail("write");
        }
        sqlite3_reset(handle_);
    }
    bool next_row() {
        const int code = sqlite3_step(handle_);
        if (code == SQLITE_ROW) return true;
        if (code != SQLITE_DONE) database_.fail("read");
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
    bool column_is_null(int index) const {
        return sqlite3_column_type(handle_, index) == SQLITE_NULL;
    }

  private:
    const Database& database_;
    sqlite3_stmt* handle_ = nullptr;
};

Database::Database(const DatabaseOptions& options) : options_(options) {
    // Created here, so that no moment exists at which others may read it.
    open_file(options.path, O_RDWR | O_CREAT, 0600);
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(options.path.c_str(), &connection_, flags, nullptr) != SQLITE_OK) {
        const std::string why = sqlite3_errmsg(connection_);
        sqlite3_close(connection_);
        throw Error(ErrorCode::unavailable,
                    fmt::format("cannot open the database: {}: {}", why, options.path.string()));
    }
    try {
        sqlite3_extended_result_codes(connection_, 1);
        sqlite3_busy_timeout(connection_, static_cast<int>(options.busy_timeout.count()));
        execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
        migrate();
    } catch (Error& error) {
        sqlite3_close(connection_);
        error.add_context("opening the service's database " + options.path.string());
        throw;
    }
}

Database::~Database() {
    const int code = sqlite3_close(connection_);
    CHECK(code == SQLITE_OK, "a statement outlives its database: {}", code);
}

void Database::migrate() {
    std::int64_t version = 0;
    {
        Statement query(*this, "PRAGMA user_version");
        if (query.next_row()) version = query.column_integer(0);
    }
    if (version > kSchemaVersion) {
        throw Error(ErrorCode::precondition_failed,
                    fmt::format("the database was written by a newer gruca: run that version, or "
                                "give this one another --data-dir: schema {}, this program knows "
                                "up to {}",
                                version, kSchemaVersion));
    }
    if (version == 0) {
        execute(fmt::format("BEGIN IMMEDIATE; {} PRAGMA user_version = {}; COMMIT;", kSchema,
                            kSchemaVersion)
                    .c_str());
    }
}

void Database::commit(const Changes& changes) {
    const std::lock_guard lock(mutex_);
    execute("BEGIN IMMEDIATE");
    try {
        apply(changes);
        execute("COMMIT");
    } catch (const Error&) {
        // SQLite has rolled back by itself after some failures; then there is nothing to undo.
        if (sqlite3_get_autocommit(connection_) == 0) {
            sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
        }
        throw;
    }
}

void Database::apply(const Changes& changes) {
    Statement add_input(*this, "INSERT INTO inputs (at_ms, json) VALUES (?, ?)");
    for (const InputRow& input : changes.inputs) {
        add_input.integer(1, to_ms(input.at)).text(2, input.json).run();
    }
    Statement put_job(*this,
                      "INSERT INTO jobs (name, number, json) VALUES (?, ?, ?) "
                      "ON CONFLICT (name) DO UPDATE SET number = excluded.number, "
                      "json = excluded.json");
    for (const JobRow& job : changes.jobs) {
        put_job.text(1, job.name).integer(2, job.number).text(3, job.json).run();
    }
    Statement put_key(*this, "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?, ?, ?)");
    for (const KeyRecord& key : changes.keys) {
        const std::string kind = name(key.kind);
        put_key.text(1, key.access_key).text(2, key.secret_key).text(3, kind);
        put_key.text(4, key.owner).text(5, key.session_token).null(6);
        if (key.expires) put_key.integer(6, to_ms(*key.expires));
        put_key.run();
    }
    Statement forget(*this, "DELETE FROM keys WHERE kind = ? AND owner = ?");
    for (const KeyOwner& owner : changes.forgotten) {
        const std::string kind = name(owner.kind);
        forget.text(1, kind).text(2, owner.owner).run();
    }
    inputs_since_prune_ += static_cast<std::int64_t>(changes.inputs.size());
    if (inputs_since_prune_ >= kInputsBetweenPrunes) prune_inputs();
}

void Database::prune_inputs() {
    Statement prune(*this, "DELETE FROM inputs WHERE seq <= (SELECT max(seq) FROM inputs) - ?");
    prune.integer(1, options_.inputs_kept_max).run();
    inputs_since_prune_ = 0;
}

void Database::for_each_job(const std::function<void(const JobRow&)>& visit) const {
    const std::lock_guard lock(mutex_);
    Statement query(*this, "SELECT name, number, json FROM jobs ORDER BY number");
    while (query.next_row()) {
        visit({.name = query.column_text(0),
               .number = query.column_integer(1),
               .json = query.column_text(2)});
    }
}

std::vector<KeyRecord> Database::keys() const {
    const std::lock_guard lock(mutex_);
    Statement query(*this,
                    "SELECT access_key, secret, kind, owner, session_token, expires_ms FROM keys");
    std::vector<KeyRecord> found;
    while (query.next_row()) {
        KeyRecord key{.access_key = query.column_text(0),
                      .secret_key = query.column_text(1),
                      .kind = key_kind_from(query.column_text(2)),
                      .owner = query.column_text(3),
                      .session_token = query.column_text(4)};
        if (!query.column_is_null(5)) key.expires = time_from_ms(query.column_integer(5));
        found.push_back(std::move(key));
    }
    return found;
}

std::vector<InputRow> Database::last_inputs(std::int64_t count) const {
    const std::lock_guard lock(mutex_);
    Statement query(*this,
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
    if (sqlite3_exec(connection_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail("execute");
}

void Database::fail(std::string_view activity) const {
    throw Error(code_of(sqlite3_extended_errcode(connection_)),
                fmt::format("the database cannot {}: {}", activity, sqlite3_errmsg(connection_)));
}

}  // namespace gruca::service
