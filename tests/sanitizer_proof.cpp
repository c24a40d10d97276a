// A program with the fault that the sanitizer of this build exists to find. Its test passes when
// the program fails: a sanitizer that is not on would let it through.

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

int main(int argc, char**) {
    const std::size_t beyond = static_cast<std::size_t>(argc) + 7;  // Unknown to the compiler.
    std::vector<int>* numbers = new std::vector<int>(8);
    int* raw = numbers->data();
    std::thread other([raw] { raw[0] = 1; });
    raw[0] = 2;  // A data race, for the thread sanitizer.
    other.join();
    std::printf("%d\n", raw[beyond]);  // One past the end, for the address sanitizer.
    delete numbers;
    return 0;
}
