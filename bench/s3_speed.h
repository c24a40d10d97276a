// bench/s3_speed.h
//
// How fast one client puts objects into an S3 server and gets them back.
#pragma once

#include <string>

#include "net/sigv4.h"

namespace gruca::bench {

struct S3Speed {
    double put_mb_per_s = 0;
    double get_mb_per_s = 0;
};

// `objects` objects of `mib` MiB one after another over one connection, each request signed and
// each payload covered by the signature; MB are 10^6 bytes. Throws what the server refuses.
S3Speed measure_s3(const std::string& origin, const net::Credentials& credentials, int objects,
                   int mib);

}  // namespace gruca::bench
