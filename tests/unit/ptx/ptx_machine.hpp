// SPDX-License-Identifier: Apache-2.0
// Runs PTX without a simulator: memory is a list of the test's own buffers, and everything else is refused.
#pragma once

#include <execution.hpp>
#include <program.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace isthmus::ptx::test {

class Buffers final : public Memory {
public:
    struct Buffer {
        std::uint64_t begin = 0, size_bytes = 0;
        bool writable = true, whole_updates = true;
        std::byte* written = nullptr;
    };
    template <class T>
    std::uint64_t add(std::vector<T>& values) {
        buffers.push_back({reinterpret_cast<std::uint64_t>(values.data()), values.size() * sizeof(T)});
        return buffers.back().begin;
    }
    MemoryWindow window(std::uint64_t address, std::uint32_t bytes, bool writes) override {
        for (const Buffer& one : buffers) {
            if (address < one.begin || address - one.begin >= one.size_bytes) continue;
            if (one.size_bytes - (address - one.begin) < bytes) return refused("it leaves its buffer");
            if (writes && !one.writable) return refused("it is read-only");
            return {one.begin, one.size_bytes, reinterpret_cast<std::byte*>(one.begin), one.whole_updates,
                    {},        one.written};
        }
        return refused("it is no buffer");
    }
    std::uint64_t update(void* word, std::uint32_t bytes, Update& update) override {
        const std::lock_guard lock(mutex_);
        ++split_updates;
        std::uint64_t old = 0;
        std::memcpy(&old, word, bytes);
        const std::uint64_t made = update.changed(old);
        std::memcpy(word, &made, bytes);
        return old;
    }
    void print(std::string_view text) override {
        const std::lock_guard lock(mutex_);
        printed += text;
    }
    void uninitialised(std::string_view text, std::uint64_t) override {
        const std::lock_guard lock(mutex_);
        uninitialised_reads.emplace_back(text);
    }
    TextureBytes texture(std::uint64_t handle) override {
        return handle < textures.size() ? textures[handle] : Memory::texture(handle);
    }
    SurfaceBytes surface(std::uint64_t handle) override {
        return handle < surfaces.size() ? surfaces[handle] : Memory::surface(handle);
    }
    void pause() override { std::this_thread::yield(); }
    bool set_condition(std::uint64_t handle, std::uint32_t value) override {
        condition = value;
        return handle == 1;
    }

    std::vector<Buffer> buffers;
    std::vector<TextureBytes> textures;  // by their handles
    std::vector<SurfaceBytes> surfaces;
    std::string printed;
    std::vector<std::string> uninitialised_reads;
    int split_updates = 0;
    std::uint32_t condition = 0;

private:
    static MemoryWindow refused(const char* why) {
        MemoryWindow out;
        out.refusal = why;
        return out;
    }
    std::mutex mutex_;
};

// A loaded program with its variables.
class Loaded {
public:
    explicit Loaded(const std::string& text, Buffers& buffers) : program(text), buffers_(buffers) {
        std::vector<std::uint64_t> addresses;
        for (const GlobalVariable& variable : program.variables()) {
            contents.emplace_back(variable.size_bytes / 8 + 2);
            addresses.push_back(buffers.add(contents.back()));
        }
        program.place(addresses);
        for (std::size_t at = 0; at < contents.size(); ++at) {
            const std::vector<std::byte> content = program.content(at);
            if (!content.empty()) std::memcpy(contents[at].data(), content.data(), content.size());
        }
    }
    template <class... Arguments>
    Fault run(const char* name, const ExecutionShape& shape, Arguments... arguments) {
        const Entry* const entry = program.entry(name);
        if (entry == nullptr) return {FaultKind::illegal_instruction, "no entry: " + program.refusal().what};
        std::vector<std::byte> block(entry->parameter_bytes);
        [[maybe_unused]] std::size_t at = 0;
        (put(block, *entry, at, arguments), ...);
        Execution execution(program, *entry, shape, block, buffers_);
        std::vector<std::thread> helpers;
        for (int one = 1; one < threads; ++one) helpers.emplace_back([&] { execution.run(); });
        execution.run();
        for (std::thread& helper : helpers) helper.join();
        instructions = execution.thread_instructions();
        return execution.fault();
    }

    Program program;
    std::vector<std::vector<std::uint64_t>> contents;
    std::uint64_t instructions = 0;
    int threads = 1;

private:
    template <class T>
    static void put(std::vector<std::byte>& block, const Entry& entry, std::size_t& at, const T& value) {
        std::memcpy(block.data() + entry.parameters[at].offset_bytes, &value, sizeof value);
        ++at;
    }
    Buffers& buffers_;
};

inline std::string module_of(const std::string& body) {
    return ".version 9.0\n.target sm_120\n.address_size 64\n" + body;
}

// The instructions between the loads of a, b and c and the store of the result. %d0 to %d2 hold a, b and c, %r0 to %r2
// and %h0 to %h2 their low bits; the result is that of %d3, %r3 or %h3, or %p as 0 or 1.
inline std::string kernel_of(const std::string& instructions, char result) {
    const std::string store = result == 'd'   ? "st.global.u64 [%o], %d3;"
                              : result == 'r' ? "cvt.u64.u32 %d3, %r3; st.global.u64 [%o], %d3;"
                              : result == 'h' ? "cvt.u64.u16 %d3, %h3; st.global.u64 [%o], %d3;"
                                              : "selp.u64 %d3, 1, 0, %p; st.global.u64 [%o], %d3;";
    return module_of(R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, .param .u32 n) {
    .reg .pred %p, %q, %s;
    .reg .b16 %h<8>;
    .reg .b32 %r<8>, %i, %t, %n;
    .reg .b64 %d<8>, %o, %x;
    ld.param.u32 %n, [n];
    mov.u32 %i, %ctaid.x;
    mov.u32 %t, %ntid.x;
    mul.lo.u32 %i, %i, %t;
    mov.u32 %t, %tid.x;
    add.u32 %i, %i, %t;
    setp.ge.u32 %s, %i, %n;
    @%s bra DONE;
    mul.wide.u32 %x, %i, 8;
    ld.param.u64 %o, [pa]; add.u64 %o, %o, %x; ld.global.u64 %d0, [%o];
    ld.param.u64 %o, [pb]; add.u64 %o, %o, %x; ld.global.u64 %d1, [%o];
    ld.param.u64 %o, [pc]; add.u64 %o, %o, %x; ld.global.u64 %d2, [%o];
    ld.param.u64 %o, [pd]; add.u64 %o, %o, %x;
    cvt.u32.u64 %r0, %d0; cvt.u32.u64 %r1, %d1; cvt.u32.u64 %r2, %d2;
    cvt.u16.u64 %h0, %d0; cvt.u16.u64 %h1, %d1; cvt.u16.u64 %h2, %d2;
    mov.u64 %d3, 0; mov.u32 %r3, 0; mov.u16 %h3, 0;
)" + instructions + "\n" +
                     store + "\nDONE: ret;\n}\n");
}

using Values = std::vector<std::uint64_t>;

inline Values evaluate(const std::string& instructions, char result, Values a, Values b, Values c) {
    Buffers buffers;
    Values out(a.size(), 0xdeadbeefdeadbeef);
    const std::uint64_t pa = buffers.add(a), pb = buffers.add(b), pc = buffers.add(c), pd = buffers.add(out);
    Loaded loaded(kernel_of(instructions, result), buffers);
    EXPECT_FALSE(loaded.program.refusal().refused()) << loaded.program.refusal().what;
    ExecutionShape shape;
    shape.block.x = 64;
    shape.grid.x = static_cast<std::uint32_t>((a.size() + 63) / 64);
    const Fault fault = loaded.run("k", shape, pa, pb, pc, pd, static_cast<std::uint32_t>(a.size()));
    EXPECT_EQ(fault.kind, FaultKind::none) << instructions << ": " << fault.message;
    return out;
}

// All combinations of the values in a, b and (with `three`) c, each compared with expected(a, b, c).
template <class Expected>
void expect_all(const std::string& instructions, char result, const Values& edges, int operands, Expected&& expected) {
    Values a, b, c;
    for (const std::uint64_t x : edges) {
        for (const std::uint64_t y : operands > 1 ? edges : Values{0}) {
            for (const std::uint64_t z : operands > 2 ? edges : Values{0}) {
                a.push_back(x);
                b.push_back(y);
                c.push_back(z);
            }
        }
    }
    const Values found = evaluate(instructions, result, a, b, c);
    int wrong = 0;
    for (std::size_t at = 0; at < a.size() && wrong < 3; ++at) {
        const std::uint64_t wanted = expected(a[at], b[at], c[at]);
        if (found[at] == wanted) continue;
        ++wrong;
        ADD_FAILURE() << instructions << std::hex << " of 0x" << a[at] << ", 0x" << b[at] << ", 0x" << c[at]
                      << " gave 0x" << found[at] << ", not 0x" << wanted;
    }
}

}  // namespace isthmus::ptx::test
