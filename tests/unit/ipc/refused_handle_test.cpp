// What an import passes on of the driver's answers, and what it says of the handle.
#include "ipc_errors.hpp"
#include "refused_handle.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace isthmus;

Error answered(Code code, int driver_code) {
    return Error(code, "the driver's words", "the driver's remedy").from_call("cuImport", driver_code);
}

Error refused(const Error& why) {
    return detail::refused_handle<errors::imported_event_of_this_process, errors::imported_event_unknown>(why);
}

// keeps R1
TEST(RefusedHandle, AHandleThatTheDriverDoesNotKnowIsAWrongArgument) {
    for (const Error& why :
         {answered(Code::driver_error, 999), answered(Code::driver_error, 205), answered(Code::invalid_argument, 1),
          answered(Code::invalid_handle, 400), answered(Code::invalid_handle, 201)}) {
        const bool own = why.driver_code() == 201;
        const Error told = refused(why);
        EXPECT_EQ(told.code(), Code::invalid_argument) << why.driver_code();
        EXPECT_EQ(told.id(), own ? "I017" : "I018") << why.driver_code();
        EXPECT_NE(told.message().find("(the driver's words)"), std::string::npos) << told.message();
        EXPECT_EQ(told.driver_code(), why.driver_code());
    }
}

// keeps R1, R2
TEST(RefusedHandle, WhatHasAnotherCauseIsPassedOn) {
    for (const Error& why :
         {answered(Code::device_lost, 700), answered(Code::unsupported, 801), answered(Code::out_of_memory, 2),
          answered(Code::system_limit, 304), answered(Code::not_permitted, 800), answered(Code::capture_error, 900)}) {
        const Error told = refused(why);
        EXPECT_EQ(told.code(), why.code());
        EXPECT_EQ(told.message(), "the driver's words");
        EXPECT_EQ(told.remedy(), "the driver's remedy");
    }
}

}  // namespace
