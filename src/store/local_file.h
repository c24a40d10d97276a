// store/local_file.h
//
// One file of a LocalStore: the object it holds, and what was put beside it. Attributes are kept in
// the extended attribute user.gruca, so that a rename publishes them with the body.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "store/object_store.h"

namespace gruca::store {

// Nothing when no regular file has the name. Links are not followed.
std::optional<ObjectInfo> find_file(int directory_fd, const std::string& name,
                                    std::string_view key);

// Null where find_file finds nothing.
std::unique_ptr<ObjectReader> open_object(int directory_fd, const std::string& name,
                                          std::string_view key);

// False where the file system keeps no attributes.
bool set_file_attributes(int fd, std::string_view attributes);

// Appends a range of one file to another without taking it through this process, where the kernel
// can. Returns the bytes it did, which may be none.
std::uint64_t copy_between_files(int from, std::uint64_t offset, std::uint64_t bytes, int to);

}  // namespace gruca::store
