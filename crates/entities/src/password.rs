//! Passwords: hashed with Argon2id into PHC strings, verified in the same time whether the user exists or not.

use std::net::IpAddr;
use std::sync::Arc;

use argon2::password_hash::rand_core::OsRng;
use argon2::password_hash::{PasswordHash, SaltString};
use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};

mod semaphore;

use semaphore::{ClientAddress, PasswordSemaphore};

/// Memory of one hash, KiB; with the number of passes the lower bound that OWASP recommends for Argon2id.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// Why a password was neither hashed nor verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// Too many wait already; the same request may succeed later.
    #[error("too many passwords are being checked")]
    Busy,
    /// The hash function failed.
    #[error("the password could not be hashed")]
    Failed,
}

/// Hashes and verifies passwords on blocking threads, only so many at once, so that memory stays bounded.
#[derive(Clone)]
pub struct PasswordHashPool {
    semaphore: Arc<PasswordSemaphore>,
    /// Hash of nothing in particular, verified against where there is no user.
    decoy: Arc<str>,
}

impl PasswordHashPool {
    /// Memory of one hash while it runs, bytes.
    pub const MEMORY: u64 = MEMORY_KIB as u64 * 1024;

    /// At most `parallel` hashes at once; each takes 19 MiB while it runs.
    pub fn new(parallel: usize) -> Self {
        Self {
            semaphore: PasswordSemaphore::new(parallel),
            decoy: decoy().into(),
        }
    }

    /// The PHC string of a password.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub async fn hash(&self, password: &str) -> Result<String, PasswordError> {
        let password = password.to_owned();
        self.run(None, move || hash(&password)).await?
    }

    /// Whether the password is the one that was hashed. Without a hash it takes as long and says no.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub async fn verify(&self, password: &str, phc: Option<&str>) -> Result<bool, PasswordError> {
        self.verify_from(None, password, phc).await
    }

    /// The same for somebody who comes from an address, and waits in rotation with those who come from others.
    ///
    /// # Errors
    /// See [`PasswordError`].
    pub async fn verify_from(
        &self,
        from: Option<IpAddr>,
        password: &str,
        phc: Option<&str>,
    ) -> Result<bool, PasswordError> {
        let password = password.to_owned();
        let known = phc.is_some();
        let phc = phc.unwrap_or(&self.decoy).to_owned();
        self.run(from, move || verify(&password, &phc) && known).await
    }

    async fn run<T: Send + 'static>(
        &self,
        source: ClientAddress,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let turn = self.semaphore.acquire(source).await.ok_or(PasswordError::Busy)?;
        tokio::task::spawn_blocking(move || {
            // Held by the work, not by the request: a client that goes away does not free its memory early.
            let _turn = turn;
            work()
        })
        .await
        .map_err(|_| PasswordError::Failed)
    }
}

/// The hash of a password that nobody has: of the same cost as any other, and not worth the memory of making one.
fn decoy() -> String {
    const OUTPUT: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p=1$ZmllbGRsaW5lZGVjb3k${OUTPUT}")
}

fn argon2() -> Result<Argon2<'static>, PasswordError> {
    let params = Params::new(MEMORY_KIB, PASSES, 1, None).map_err(|_| PasswordError::Failed)?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash(password: &str) -> Result<String, PasswordError> {
    let salt = SaltString::generate(&mut OsRng);
    argon2()?
        .hash_password(password.as_bytes(), &salt)
        .map(|hash| hash.to_string())
        .map_err(|_| PasswordError::Failed)
}

fn verify(password: &str, phc: &str) -> bool {
    // The parameters come from the PHC string, so that old hashes stay valid when the constants change.
    PasswordHash::new(phc).is_ok_and(|hash| {
        Argon2::default()
            .verify_password(password.as_bytes(), &hash)
            .is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_verifies_against_its_own_hash_only() {
        let passwords = PasswordHashPool::new(2);
        let hash = passwords.hash("tenant").await.unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"));
        assert!(passwords.verify("tenant", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("Tenant", Some(&hash)).await.unwrap());
        assert!(!passwords.verify("decoy", None).await.unwrap());
        assert!(!passwords.verify("tenant", Some("not a hash")).await.unwrap());
        assert!(
            !verify("", &decoy()) && PasswordHash::new(&decoy()).is_ok(),
            "the decoy can be verified against"
        );
        assert_ne!(hash, passwords.hash("tenant").await.unwrap(), "salted");
    }
}
