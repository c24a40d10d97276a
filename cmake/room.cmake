# room(<name> USES <rooms...> LIBRARIES <external targets...> SOURCES <files...>
#      TESTS <files...> SLOW_TESTS <files...>)
#
# A room is one folder of src/ and one static library. It may include headers only of itself and of
# the rooms it USES. Three checks hold that line:
#   1. here:          a room can only USE a room defined before it, so the graph has no cycle;
#   2. tidy_test:     every #include "room/..." in the folder is of a room in USES;
#   3. <name>_links:  the whole archive links with nothing but what it USES.
#
# TESTS are labelled "fast" (all fast tests together stay under 60 s on two cores), SLOW_TESTS "slow".
add_library(gruca_warnings INTERFACE)
target_compile_options(gruca_warnings INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor -Werror
    -Wno-restrict>)  # False positives on std::string operator+ in GCC 12.

function(room_test name suffix label)
  add_executable(${name}_${suffix} ${ARGN})
  target_link_libraries(${name}_${suffix} PRIVATE ${name} gruca_warnings GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name}_${suffix} PRIVATE GRUCA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${name}_${suffix} TEST_PREFIX "${name}/" NO_PRETTY_VALUES
    DISCOVERY_TIMEOUT 60 PROPERTIES LABELS ${label})
endfunction()

function(room name)
  cmake_parse_arguments(ROOM "" "" "USES;LIBRARIES;SOURCES;TESTS;SLOW_TESTS" ${ARGN})
  foreach(used IN LISTS ROOM_USES)
    if(NOT TARGET ${used})
      message(FATAL_ERROR "room '${name}' uses '${used}', which is not defined before it in src/CMakeLists.txt")
    endif()
  endforeach()
  string(JOIN " " uses ${ROOM_USES})
  set_property(GLOBAL APPEND_STRING PROPERTY GRUCA_ROOMS "${name}: ${uses}\n")

  add_library(${name} STATIC ${ROOM_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PUBLIC ${ROOM_USES} PRIVATE ${ROOM_LIBRARIES} gruca_warnings)
  if(GRUCA_SANITIZER STREQUAL "fuzzer")  # The room is all that its fuzz targets want.
    return()
  endif()

  add_executable(${name}_links ${PROJECT_SOURCE_DIR}/cmake/empty_main.cpp)
  target_link_libraries(${name}_links PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,${name}>)

  if(ROOM_TESTS)
    room_test(${name} test fast ${ROOM_TESTS})
  endif()
  if(ROOM_SLOW_TESTS)
    room_test(${name} slow_test slow ${ROOM_SLOW_TESTS})
  endif()
endfunction()
