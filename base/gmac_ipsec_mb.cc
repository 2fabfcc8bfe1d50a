// GMAC by IPsec MB, where configure found it (DEDUP_IPSEC_MB).
#include "base/gmac.h"

#ifdef DEDUP_IPSEC_MB
#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include <new>
#endif

namespace dedup {

#ifdef DEDUP_IPSEC_MB
namespace {

// Those of one set of instructions. They keep nothing outside of what they are given.
struct Functions {
  aes_gcm_pre_t prepare = nullptr;
  aes_gmac_init_t begin = nullptr;
  aes_gmac_update_t add = nullptr;
  aes_gmac_finalize_t end = nullptr;
};

using Initialize = void (*)(IMB_MGR*);

// The widest that both the processor and the system have, which may keep registers from programs;
// the library asks only the processor. nullptr if there is none.
Initialize initialize_of(IpsecMbGmac::Instructions most) {
  using Set = IpsecMbGmac::Instructions;
  const bool sse = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") &&
                   __builtin_cpu_supports("pclmul");
  if (!sse) return nullptr;
  const bool avx = most >= Set::kAvx && __builtin_cpu_supports("avx");
  if (!avx) return init_mb_mgr_sse;
  const bool avx2 =
      most >= Set::kAvx2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (!avx2) return init_mb_mgr_avx;
  const bool avx512 = most >= Set::kAvx512 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return avx512 ? init_mb_mgr_avx512 : init_mb_mgr_avx2;
}

// Nothing if the library cannot be used. Its manager, 200 KB, is for jobs, which are not made here:
// only what it knows of functions is kept.
std::optional<Functions> find_functions(IpsecMbGmac::Instructions most) {
  const Initialize initialize = initialize_of(most);
  IMB_MGR* const manager = initialize == nullptr ? nullptr : alloc_mb_mgr(0);
  if (manager == nullptr) return std::nullopt;
  initialize(manager);  // tests itself, too
  const bool works = imb_get_errno(manager) == 0;
  const Functions found{manager->gcm128_pre, manager->gmac128_init, manager->gmac128_update,
                        manager->gmac128_finalize};
  free_mb_mgr(manager);
  if (!works) return std::nullopt;
  return found;
}

}  // namespace

struct IpsecMbGmac::State {
  alignas(64) gcm_key_data key;
  Functions functions;
};

void IpsecMbGmac::Free::operator()(State* state) const {
  OPENSSL_cleanse(&state->key, sizeof state->key);
  delete state;
}

std::optional<IpsecMbGmac> IpsecMbGmac::create(GmacKey key, Instructions most) {
  // Once a process: it takes a fraction of a millisecond.
  static const std::optional<Functions> widest = find_functions(Instructions::kAvx512);
  const std::optional<Functions> functions =
      most == Instructions::kAvx512 ? widest : find_functions(most);
  if (!functions) return std::nullopt;
  State* const state = new (std::nothrow) State{{}, *functions};
  if (state == nullptr) return std::nullopt;
  functions->prepare(key.data(), &state->key);
  return IpsecMbGmac(state);
}

void IpsecMbGmac::tag(const GmacNonce& nonce, GmacMessage message, GmacTag& out) const {
  const Functions& functions = state_->functions;
  gcm_context_data context;
  functions.begin(&state_->key, &context, nonce.data(), nonce.size());
  for (const std::span<const std::byte> part : message) {
    if (part.empty()) continue;
    functions.add(&state_->key, &context, reinterpret_cast<const std::uint8_t*>(part.data()),
                  part.size());
  }
  functions.end(&state_->key, &context, reinterpret_cast<std::uint8_t*>(out.data()), out.size());
}

#else

struct IpsecMbGmac::State {};

void IpsecMbGmac::Free::operator()(State* state) const {
  delete state;
}

std::optional<IpsecMbGmac> IpsecMbGmac::create(GmacKey, Instructions) {
  return std::nullopt;
}

void IpsecMbGmac::tag(const GmacNonce&, GmacMessage, GmacTag&) const {}

#endif

}  // namespace dedup
