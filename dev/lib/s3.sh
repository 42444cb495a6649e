# shellcheck shell=bash
# A real S3 server (versitygw) with versioning, TLS, one user per duty and a bucket policy that holds them apart.

S3_BUCKET=trawl-artifacts S3_REGION=us-east-1
S3_USERS=(root admin runner operator gateway)

s3_files() { S3_DIR=$S/s3; S3_ENDPOINT=https://$(cat "$S3_DIR/listen" 2>/dev/null || true); }

# s3_default_listen: in a cluster the host's end of the node's link, so that pods and host reach it by one name.
s3_default_listen() {
  if [ "$(cat "$S/kind" 2>/dev/null)" = cluster ]; then echo "$HOST_IP:$S3_PORT"; else echo "127.0.0.1:$S3_PORT"; fi
}

s3_credentials() {
  local user d
  for user in "${S3_USERS[@]}"; do
    d=$S3_DIR/credentials/$user
    [ ! -s "$d/secret-access-key" ] || continue
    (
      umask 077
      mkdir -p "$d"
      # No newline at the end: these files become the content of Secrets as they are.
      printf 'trawl%s%s' "$user" "$(openssl rand -hex 6)" >"$d/access-key-id"
      printf %s "$(openssl rand -hex 24)" >"$d/secret-access-key"
    )
  done
}

# s3_curl USER METHOD PATH [BODY-FILE] [CURL-ARGUMENT...]: one signed request. The secret goes in on standard
# input, for an argument list is readable by every user of the machine. Canonical queries need 'key=' in full.
s3_curl() {
  local user=$1 method=$2 path=$3 body=${4:-/dev/null} d
  shift 3; [ $# = 0 ] || shift
  d=$S3_DIR/credentials/$user
  local upload=()
  [ "$body" = /dev/null ] || upload=(--data-binary "@$body" -H 'Content-Type: application/octet-stream')
  printf 'user = "%s:%s"\n' "$(cat "$d/access-key-id")" "$(cat "$d/secret-access-key")" |
    curl -sS --noproxy '*' -K - --max-time 10 --cacert "$PKI/ca.crt" --aws-sigv4 "aws:amz:$S3_REGION:s3" -X "$method" \
      -H "x-amz-content-sha256: $(sha256sum "$body" | cut -c1-64)" "${upload[@]}" "$@" "$S3_ENDPOINT$path"
}

# s3_expect CODE USER METHOD PATH [BODY-FILE]: fails with the server's own words on any other answer.
s3_expect() {
  local want=$1 answer=$S3_DIR/answer got; shift
  [ "$2" != HEAD ] || set -- "$1" HEAD "$3" "${4:-/dev/null}" --head
  got=$(s3_curl "$1" "$2" "$3" "${4:-/dev/null}" -o "$answer" -w '%{http_code}' "${@:5}") || true
  [ "$got" = "$want" ] || die "S3 $2 $3 as $1 gave ${got:-no answer} instead of $want: $(head -c 300 "$answer" 2>/dev/null)"
}

s3_policy() {
  jq -n --arg b "$S3_BUCKET" \
    --arg runner "$(cat "$S3_DIR/credentials/runner/access-key-id")" \
    --arg operator "$(cat "$S3_DIR/credentials/operator/access-key-id")" \
    --arg gateway "$(cat "$S3_DIR/credentials/gateway/access-key-id")" '
    def allow($id; $user; $actions; $suffix):
      {Sid: $id, Effect: "Allow", Principal: {AWS: [$user]}, Action: $actions, Resource: ("arn:aws:s3:::" + $b + $suffix)};
    {Version: "2012-10-17", Statement: [
      allow("RunnerWrites"; $runner; ["s3:PutObject"]; "/*"),
      allow("OperatorReadsAndDeletes"; $operator; ["s3:GetObject", "s3:GetObjectVersion", "s3:DeleteObject", "s3:DeleteObjectVersion"]; "/*"),
      allow("OperatorLists"; $operator; ["s3:ListBucket", "s3:ListBucketVersions", "s3:GetBucketVersioning"]; ""),
      allow("GatewayReads"; $gateway; ["s3:GetObject", "s3:GetObjectVersion"]; "/*")]}'
}

s3_make_user() {
  local role=user file=$S3_DIR/request d=$S3_DIR/credentials/$1
  [ "$1" != admin ] || role='admin'
  s3_curl root PATCH /list-users /dev/null 2>/dev/null | grep -q "$(cat "$d/access-key-id")" && return 0
  printf '<Account><Access>%s</Access><Secret>%s</Secret><Role>%s</Role></Account>' \
    "$(cat "$d/access-key-id")" "$(cat "$d/secret-access-key")" "$role" >"$file"
  s3_expect 201 root PATCH /create-user "$file"
}

s3_make_bucket() {
  local file=$S3_DIR/request user
  for user in admin runner operator gateway; do s3_make_user $user; done
  [ "$(s3_curl root HEAD "/$S3_BUCKET" /dev/null --head -o /dev/null -w '%{http_code}')" = 200 ] || s3_expect 200 root PUT "/$S3_BUCKET"
  printf '<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>Enabled</Status></VersioningConfiguration>' >"$file"
  s3_expect 200 root PUT "/$S3_BUCKET?versioning=" "$file"
  s3_policy >"$file"
  s3_expect 204 root PUT "/$S3_BUCKET?policy=" "$file"
}

# s3_verify: the rights as they are, by real requests; a policy that is not enforced must not pass for one.
s3_verify() {
  local key=/$S3_BUCKET/dev-check-$RANDOM$RANDOM file=$S3_DIR/request
  echo "rights check" >"$file"
  s3_expect 200 runner PUT "$key" "$file"
  s3_expect 403 runner GET "$key"
  s3_expect 403 runner DELETE "$key"
  s3_expect 403 runner GET "/$S3_BUCKET?list-type=2"
  s3_expect 403 gateway PUT "$key" "$file"
  s3_expect 403 gateway DELETE "$key"
  s3_expect 403 operator PUT "$key" "$file"
  s3_expect 200 gateway GET "$key"
  s3_expect 200 operator GET "$key"
  cmp -s "$file" "$S3_DIR/answer" || die "the S3 server gave back other bytes than were stored"
  s3_expect 200 operator HEAD "$key"
  s3_expect 200 operator GET "/$S3_BUCKET?list-type=2"
  s3_expect 403 runner GET "/$S3_BUCKET?versions="
  s3_expect 403 gateway GET "/$S3_BUCKET?versions="
  s3_expect 204 operator DELETE "$key"
  s3_expect 404 operator GET "$key"
  local kept; kept=$(s3_versions "$key")
  # The bytes and the marker that hides them: without versioning the tests of deletion would prove nothing.
  [ "$(wc -w <<<"$kept")" = 2 ] || die "a deleted object should be two versions in a bucket with versioning, not: $kept"
  local version
  for version in $kept; do
    s3_expect 403 runner DELETE "$key?versionId=$version"
    s3_expect 403 gateway DELETE "$key?versionId=$version"
    s3_expect 204 operator DELETE "$key?versionId=$version"
  done
  kept=$(s3_versions "$key")
  [ -z "$kept" ] || die "versions are still there after their deletion as operator: $kept"
}

# s3_versions PATH: the identifiers of its versions and delete markers, as the operator sees them.
s3_versions() {
  s3_expect 200 operator GET "/$S3_BUCKET?prefix=${1#"/$S3_BUCKET/"}&versions="
  { grep -oE '<VersionId>[^<]+' "$S3_DIR/answer" || true; } | cut -d'>' -f2
}

s3_start() {
  local listen; listen=$(cat "$S3_DIR/listen")
  mkdir -p "$S3_DIR"/{iam,data,versions}
  pki_ca
  pki_server "s3-${listen%:*}" trawl-dev-s3 "DNS:localhost,IP:127.0.0.1,IP:${listen%:*}"
  ROOT_ACCESS_KEY_ID=$(cat "$S3_DIR/credentials/root/access-key-id") \
    ROOT_SECRET_ACCESS_KEY=$(cat "$S3_DIR/credentials/root/secret-access-key") \
    spawn s3 "${TOOL[versitygw]}" --port "$listen" --region "$S3_REGION" --cert "$PKI/s3-${listen%:*}.crt" --key "$PKI/s3-${listen%:*}.key" \
    --iam-dir "$S3_DIR/iam" --iam-cache-ttl 2 --quiet --health /health posix --versioning-dir "$S3_DIR/versions" "$S3_DIR/data"
}
s3_healthy() { curl -sf --noproxy '*' --max-time 2 --cacert "$PKI/ca.crt" "$S3_ENDPOINT/health"; }

s3_stop() {
  [ -d "$S/s3" ] || return 0
  stop_process s3 5
  rm -rf --one-file-system "$S/s3"
}
