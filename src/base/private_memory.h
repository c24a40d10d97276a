// base/private_memory.h
//
// For programs that hold keys.
#pragma once

namespace gruca {

// From here on no other process of the user can look into this one, and it leaves no core file. A
// program that it starts leaves none either, unless it raises its own limit.
void keep_memory_private();

}  // namespace gruca
