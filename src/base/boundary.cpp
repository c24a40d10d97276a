#include "base/boundary.h"

#include <new>
#include <system_error>

namespace gruca {

Error error_in_flight() {
    try {
        throw;
    } catch (const Error& error) {
        return error;
    } catch (const std::bad_alloc&) {
        return Error(ErrorCode::resource_exhausted, "out of memory");
    } catch (const std::system_error& error) {
        return Error(code_of_errno(error.code().value()), error.what());
    } catch (const std::exception& error) {
        return Error(ErrorCode::internal, error.what());
    } catch (...) {
        return Error(ErrorCode::internal, "an exception of an unknown type");
    }
}

}  // namespace gruca
