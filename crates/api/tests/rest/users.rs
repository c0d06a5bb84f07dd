//! Users and their activation.

use serde_json::{Value, json};

use crate::fixture::{RestFixture, id, no};

#[tokio::test]
async fn a_new_user_activates_the_account_through_a_link() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let ann = json!({ "email": "Ann@Example.org", "authority": "TENANT_ADMIN", "firstName": "Ann" });
    let ann = admin.post("/api/user?sendActivationMail=false", &ann).await;
    let login = json!({ "username": "ann@example.org", "password": "secret-1" });
    assert_eq!(
        world.nobody().refused("POST", "/api/auth/login", &login).await.1,
        10
    );

    let path = format!("/api/user/{}", id(&ann));
    let link = admin.get(&format!("{path}/activationLinkInfo")).await;
    let link = link["value"].as_str().unwrap();
    let (base, token) = link.split_once("activateToken=").unwrap();
    assert_eq!(base, "http://iot.example.org/api/noauth/activate?");
    let follow = format!("/api/noauth/activate?activateToken={token}");
    assert_eq!(world.nobody().send("GET", &follow, "").await.0, 303);
    let unknown = "/api/noauth/activate?activateToken=unknown";
    assert_eq!(world.nobody().send("GET", unknown, "").await.0, 409);
    let activate = |password: &str| json!({ "activateToken": token, "password": password });
    assert_eq!(
        world
            .nobody()
            .refused("POST", "/api/noauth/activate", &activate("short"))
            .await,
        no(400, 31, "Password must be 6 or more characters in length.")
    );
    let pair = world
        .nobody()
        .post("/api/noauth/activate", &activate("secret-1"))
        .await;
    let user = world
        .with_token(pair["token"].as_str().unwrap())
        .get("/api/auth/user")
        .await;
    assert_eq!(user["firstName"], "Ann");
    world.log_in("ann@example.org", "secret-1").await;
    assert_eq!(
        world
            .nobody()
            .refused("POST", "/api/noauth/activate", &activate("secret-2"))
            .await
            .0,
        400
    );
    assert_eq!(
        admin
            .refused("GET", &format!("{path}/activationLink"), &Value::Null)
            .await,
        no(400, 31, "User is already activated!")
    );
}

#[tokio::test]
async fn an_expired_activation_link_is_renewed_by_asking_for_it() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    let user = json!({ "email": "late@example.org", "authority": "TENANT_ADMIN" });
    let user = admin.post("/api/user", &user).await;
    let path = format!("/api/user/{}/activationLinkInfo", id(&user));
    let first = admin.get(&path).await;
    assert_eq!(first["ttlMs"], 24 * 3_600_000);
    world.clock.advance(24 * 3_600_000);
    let token = first["value"].as_str().unwrap().rsplit('=').next().unwrap();
    let body = json!({ "activateToken": token, "password": "secret-1" });
    assert_eq!(
        world
            .nobody()
            .refused("POST", "/api/noauth/activate", &body)
            .await
            .2,
        "Activation token expired"
    );
    let second = world.admin().await.get(&path).await;
    assert_ne!(second["value"], first["value"]);
}

#[tokio::test]
async fn users_belong_where_their_authority_says_and_stay_there() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let path = "/api/user";
    for (body, message) in [
        (
            json!({ "email": "", "authority": "TENANT_ADMIN" }),
            "User email should be specified!",
        ),
        (
            json!({ "email": "x", "authority": "TENANT_ADMIN" }),
            "Invalid email address format 'x'!",
        ),
        (
            json!({ "email": "x@y.zz", "authority": "CUSTOMER_USER" }),
            "Customer user should be assigned to customer!",
        ),
        (
            json!({ "email": "Tenant@ThingsBoard.org", "authority": "TENANT_ADMIN" }),
            "User with email 'Tenant@ThingsBoard.org' already present in database!",
        ),
    ] {
        assert_eq!(admin.refused("POST", path, &body).await, no(400, 31, message));
    }
    let climber = json!({ "email": "x@y.zz", "authority": "SYS_ADMIN" });
    assert_eq!(admin.refused("POST", path, &climber).await.0, 403);
    let homeless = json!({ "email": "x@y.zz", "authority": "TENANT_ADMIN" });
    assert_eq!(
        sysadmin.refused("POST", path, &homeless).await.2,
        "Tenant administrator should be assigned to tenant!"
    );
    let customer_user = world.customer_user().await;
    let mut me = customer_user.get("/api/auth/user").await;
    me["authority"] = json!("TENANT_ADMIN");
    assert_eq!(
        customer_user.refused("POST", path, &me).await.2,
        "Tenant administrator can't be assigned to customer!"
    );
    let customer = me["customerId"].take();
    me["customerId"] = json!({ "entityType": "CUSTOMER", "id": "13814000-1dd2-11b2-8080-808080808080" });
    assert_eq!(
        customer_user.refused("POST", path, &me).await.2,
        "Can't update user authority!"
    );
    me["authority"] = json!("CUSTOMER_USER");
    me["customerId"] = customer;
    me["lastName"] = json!("Miller");
    assert_eq!(customer_user.post(path, &me).await["lastName"], "Miller");
}

#[tokio::test]
async fn a_disabled_user_is_out_at_once() {
    let world = RestFixture::demo().await;
    let (admin, user) = (world.admin().await, world.customer_user().await);
    let me = user.get("/api/auth/user").await;
    let path = format!("/api/user/{}", id(&me));
    let enabled = format!("{path}/userCredentialsEnabled?userCredentialsEnabled");
    admin.post(&format!("{enabled}=false"), &Value::Null).await;
    assert_eq!(user.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
    let login = json!({ "username": "customer@thingsboard.org", "password": "customer" });
    assert_eq!(
        world.nobody().refused("POST", "/api/auth/login", &login).await,
        no(401, 10, "User account is not active")
    );
    assert_eq!(
        admin.get(&path).await["additionalInfo"]["userCredentialsEnabled"],
        false
    );
    admin.post(&format!("{enabled}=true"), &Value::Null).await;
    world.customer_user().await;
}

#[tokio::test]
async fn the_last_administrator_of_a_tenant_cannot_be_deleted() {
    let world = RestFixture::demo().await;
    let (sysadmin, admin) = (world.sysadmin().await, world.admin().await);
    let me = admin.get("/api/auth/user").await;
    let path = format!("/api/user/{}", id(&me));
    assert_eq!(
        sysadmin.refused("DELETE", &path, &Value::Null).await,
        no(400, 31, "At least one tenant administrator must remain!")
    );
    let root = sysadmin.get("/api/auth/user").await;
    let root = format!("/api/user/{}", id(&root));
    assert_eq!(
        sysadmin.refused("DELETE", &root, &Value::Null).await,
        no(403, 20, "Sysadmin is not allowed to delete himself")
    );
    let second = json!({ "email": "second@example.org", "authority": "TENANT_ADMIN" });
    admin.post("/api/user", &second).await;
    sysadmin.delete(&path).await;
    assert_eq!(admin.refused("GET", "/api/auth/user", &Value::Null).await.1, 11);
}

#[tokio::test]
async fn administrators_look_through_the_eyes_of_their_users() {
    let world = RestFixture::demo().await;
    let admin = world.admin().await;
    assert_eq!(admin.get("/api/user/tokenAccessEnabled").await, true);
    let users = admin
        .get("/api/users?pageSize=10&page=0&textSearch=customerA")
        .await;
    let path = format!("/api/user/{}/token", id(&users["data"][0]));
    let pair = admin.get(&path).await;
    let user = world.with_token(pair["token"].as_str().unwrap());
    assert_eq!(
        user.get("/api/auth/user").await["email"],
        "customerA@thingsboard.org"
    );
    let infos = user.get("/api/users/info?pageSize=10&page=0").await;
    assert_eq!(infos["totalElements"], 2, "those of the own customer");
}
