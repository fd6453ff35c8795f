//! Models of caches: the expected hit rate, without a simulation.
//!
//! All models assume independent requests of constant popularity. They also assume a cache so large that the time an
//! object stays in it hardly varies (the approximation of Che et al. 2002, Fricker et al. 2012). At that time τ,
//! counted in requests, the expected number of objects in the cache equals its capacity; [`characteristic_time`] finds
//! it.
//!
//! - [`eviction`]: LRU, FIFO and Random, and the optimum (the most popular objects, which LFU keeps in the long run);
//! - [`filter`]: Takemasa19 Eqs. 5.3-5.7, FIFO behind the admission Filter.
//!
//! Paper's symbols: λ'_c = [`Class::share`], C = `capacity`, τ = `time`, p^Hit = `hit`, p^Insertion = `insertion`,
//! q = `history`, θ = `threshold`. Rates are shares of all requests, so that Σ λ'_c = 1 and W = q.
//!
//! [`Class::share`]: popularity_classes::Class::share

pub mod characteristic_time;
pub mod eviction;
pub mod filter;
pub mod popularity_classes;

pub use popularity_classes::PopularityClasses;
