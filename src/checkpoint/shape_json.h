// checkpoint/shape_json.h
//
// Shapes as JSON: an array of extents.
#pragma once

#include "base/json.h"
#include "tensor/shape.h"

namespace gruca::checkpoint {

inline Json shape_to_json(const tensor::Shape& shape) {
    Json json = Json::array();
    for (const std::int64_t extent : shape) json.push(extent);
    return json;
}

inline tensor::Shape shape_from(const Json& json) {
    tensor::Shape shape;
    for (const Json& extent : json.as_array()) shape.push_back(extent.as_int());
    return shape;
}

}  // namespace gruca::checkpoint
