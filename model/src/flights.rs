use crate::flight::Flights;
#[test]
fn x() { shuttle::check_random(|| { let f: Flights<u8> = Flights::new(); shuttle::future::block_on(async move { assert_eq!(f.join("a", async || 1).landed().await, Some(1)); }) }, 100) }
