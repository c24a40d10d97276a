#include "service/job_index.h"

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace gruca::service {
namespace {

constexpr std::array kOrders = {JobOrder::creation, JobOrder::name, JobOrder::status};

}  // namespace

JobPlace place_of(const JobSummary& job, JobOrder order) {
    switch (order) {
        case JobOrder::creation:
            break;
        case JobOrder::name:
            return {job.name, 0, job.number};
        case JobOrder::status:
            return {job.status, 0, job.number};
    }
    return {"", to_ms(job.created), job.number};
}

void JobIndex::put(JobSummary job) {
    const JobSummary* known = find(job.name);
    if (known == nullptr) {
        const Slot slot = add(std::move(job));
        for (const JobOrder order : kOrders) insert(slot, order);
        return;
    }
    const auto slot = *first_not_before(PlaceView(job.name, 0, INT64_MIN), JobOrder::name);
    std::vector<JobOrder> moved;
    for (const JobOrder order : kOrders) {
        if (place_of(job, order) != place_of(*known, order)) moved.push_back(order);
    }
    for (const JobOrder order : moved) erase(slot, order);
    Row& row = rows_[slot];
    row.created = job.created;
    row.modified = job.modified;
    row.number = job.number;
    row.status = status_number(job.status);
    jobs_[slot] = std::move(job);
    for (const JobOrder order : moved) insert(slot, order);
}

void JobIndex::put_new(std::vector<JobSummary> jobs) {
    for (JobSummary& job : jobs) {
        const Slot slot = add(std::move(job));
        for (Order& order : orders_) order.push_back(slot);
    }
    for (const JobOrder order : kOrders) {
        Order& slots = orders_.at(static_cast<std::size_t>(order));
        std::sort(slots.begin(), slots.end(), [&](Slot a, Slot b) {
            return place_of_slot(a, order) < place_of_slot(b, order);
        });
    }
}

JobIndex::Slot JobIndex::add(JobSummary job) {
    const auto slot = static_cast<Slot>(rows_.size());
    rows_.push_back({.created = job.created,
                     .modified = job.modified,
                     .number = job.number,
                     .name_begin = names_.size(),
                     .name_bytes = static_cast<std::uint32_t>(job.name.size()),
                     .status = status_number(job.status)});
    names_ += job.name;
    slot_by_arn_[to_lower(job.arn)] = slot;
    jobs_.push_back(std::move(job));
    return slot;
}

std::uint32_t JobIndex::status_number(const std::string& status) {
    const std::uint32_t number = find_status(status);
    if (number == statuses_.size()) statuses_.push_back(status);
    return number;
}

std::string_view JobIndex::name_of(const Row& row) const {
    return std::string_view(names_).substr(row.name_begin, row.name_bytes);
}

// place_of, without making a string.
JobIndex::PlaceView JobIndex::place_of_slot(Slot slot, JobOrder order) const {
    const Row& row = rows_[slot];
    switch (order) {
        case JobOrder::creation:
            break;
        case JobOrder::name:
            return {name_of(row), 0, row.number};
        case JobOrder::status:
            return {statuses_[row.status], 0, row.number};
    }
    return {"", to_ms(row.created), row.number};
}

const JobIndex::Order& JobIndex::places(JobOrder order) const {
    return orders_.at(static_cast<std::size_t>(order));
}

void JobIndex::insert(Slot slot, JobOrder order) {
    const auto at = first_not_before(place_of_slot(slot, order), order);
    orders_.at(static_cast<std::size_t>(order)).insert(at, slot);
}

void JobIndex::erase(Slot slot, JobOrder order) {
    const auto at = first_not_before(place_of_slot(slot, order), order);
    orders_.at(static_cast<std::size_t>(order)).erase(at);
}

JobIndex::Order::const_iterator JobIndex::first_not_before(const PlaceView& place,
                                                           JobOrder order) const {
    return std::partition_point(places(order).begin(), places(order).end(),
                                [&](Slot slot) { return place_of_slot(slot, order) < place; });
}

JobIndex::Order::const_iterator JobIndex::first_behind(const PlaceView& place,
                                                       JobOrder order) const {
    return std::partition_point(places(order).begin(), places(order).end(),
                                [&](Slot slot) { return place_of_slot(slot, order) <= place; });
}

const JobSummary* JobIndex::find(const std::string& name) const {
    const auto found = first_not_before(PlaceView(name, 0, INT64_MIN), JobOrder::name);
    if (found == places(JobOrder::name).end() || name_of(rows_[*found]) != name) return nullptr;
    return &jobs_[*found];
}

const JobSummary* JobIndex::find_by_arn(const std::string& arn) const {
    const JobSummary* same = find(arn.substr(arn.rfind('/') + 1));
    if (same && same->arn == arn) return same;
    const auto found = slot_by_arn_.find(to_lower(arn));
    return found == slot_by_arn_.end() ? nullptr : &jobs_[found->second];
}

std::vector<JobSummary> JobIndex::with_prefix(const std::string& name_prefix) const {
    std::vector<JobSummary> found;
    auto it = first_not_before(PlaceView(name_prefix, 0, INT64_MIN), JobOrder::name);
    for (; it != places(JobOrder::name).end(); ++it) {
        if (!name_of(rows_[*it]).starts_with(name_prefix)) break;
        found.push_back(jobs_[*it]);
    }
    return found;
}

// That of no job where the status has not occurred.
std::uint32_t JobIndex::find_status(const std::string& status) const {
    const auto found = std::find(statuses_.begin(), statuses_.end(), status);
    return static_cast<std::uint32_t>(found - statuses_.begin());
}

bool JobIndex::matches(const Row& row, const JobQuery& query, std::uint32_t status) const {
    return (query.status.empty() || row.status == status) &&
           (!query.created_after || row.created > *query.created_after) &&
           (!query.created_before || row.created < *query.created_before) &&
           (!query.modified_after || row.modified > *query.modified_after) &&
           (!query.modified_before || row.modified < *query.modified_before) &&
           (query.name_contains.empty() ||
            name_of(row).find(query.name_contains) != std::string_view::npos);
}

// Nothing: kRowsWalkedMax did not do.
template <class Iterator>
std::optional<std::vector<JobIndex::Slot>> JobIndex::walk(Iterator begin, Iterator end,
                                                          const JobQuery& query) const {
    const std::uint32_t status = find_status(query.status);
    std::vector<Slot> found;
    for (std::size_t walked = 0; begin != end && found.size() <= query.count_max; ++begin) {
        if (++walked > kRowsWalkedMax) return std::nullopt;
        if (matches(rows_[*begin], query, status)) found.push_back(*begin);
    }
    return found;
}

std::vector<JobIndex::Slot> JobIndex::scan(const JobQuery& query) const {
    const auto place = [&](Slot slot) { return place_of_slot(slot, query.order); };
    const auto is_behind = [&](Slot slot) {
        if (!query.after) return true;
        return query.descending ? place(slot) < *query.after : place(slot) > *query.after;
    };
    const std::uint32_t status = find_status(query.status);
    std::vector<Slot> found;
    for (Slot slot = 0; slot < rows_.size(); ++slot) {
        if (matches(rows_[slot], query, status) && is_behind(slot)) found.push_back(slot);
    }
    const std::size_t wanted = std::min(found.size(), query.count_max + 1);
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(wanted),
                      found.end(), [&](Slot a, Slot b) {
                          return query.descending ? place(b) < place(a) : place(a) < place(b);
                      });
    found.resize(wanted);
    return found;
}

JobPage JobIndex::page_of(const std::vector<Slot>& slots, const JobQuery& query) const {
    JobPage page{.jobs = {}, .more = slots.size() > query.count_max};
    for (std::size_t i = 0; i < slots.size() && i < query.count_max; ++i) {
        page.jobs.push_back(jobs_[slots[i]]);
    }
    return page;
}

JobPage JobIndex::list(const JobQuery& query) const {
    const Order& slots = places(query.order);
    std::optional<std::vector<Slot>> found;
    if (query.descending) {
        const auto end = query.after ? first_not_before(*query.after, query.order) : slots.end();
        found = walk(std::make_reverse_iterator(end), slots.rend(), query);
    } else {
        const auto begin = query.after ? first_behind(*query.after, query.order) : slots.begin();
        found = walk(begin, slots.end(), query);
    }
    return page_of(found ? *found : scan(query), query);
}

}  // namespace gruca::service
