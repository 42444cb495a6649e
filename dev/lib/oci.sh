# shellcheck shell=bash
# Packs one program into an OCI image archive. The same bytes go in, the same digest comes out.

# copy_with_libraries ROOT PROGRAM: the program and what the loader needs to start it, at the paths it looks in.
copy_with_libraries() {
  local root=$1 program=$2 library
  install -D -m 0755 "$program" "$root/usr/bin/${program##*/}"
  # Debug information is for the workspace's own builds; images carry the symbol table alone.
  strip --strip-debug "$root/usr/bin/${program##*/}"
  if LC_ALL=C ldd "$program" | grep -F 'not found' >&2; then
    die "$program needs the libraries above, which are not installed"
  fi
  while read -r library; do
    install -D -m 0755 "$library" "$root$library"
  done < <(LC_ALL=C ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }')
}

# make_root ROOT PROGRAM: the whole file system of an image.
make_root() {
  local root=$1
  rm -rf "$root"; mkdir -p "$root/etc"
  install -d -m 1777 "$root/tmp"
  printf '%s\n' 'root:x:0:0:root:/:/sbin/nologin' 'trawl:x:65532:65532:trawl:/:/sbin/nologin' >"$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'trawl:x:65532:' >"$root/etc/group"
  copy_with_libraries "$root" "$2"
}

# check_root ROOT PROGRAM: starts the packed program with nothing but its own image around it.
check_root() {
  local enter=(chroot)
  [ "$(id -u)" = 0 ] || enter=(unshare --map-root-user chroot)
  "${enter[@]}" "$1" "/usr/bin/$2" --help >/dev/null || die "$2 does not start inside its image; its message is above"
}

pack() { tar --create --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=gnu "$@"; }

# add_blob LAYOUT FILE: moves a file into the layout under its digest, and prints the digest.
add_blob() {
  local digest
  digest=$(sha256sum "$2" | cut -d' ' -f1)
  mv "$2" "$1/blobs/sha256/$digest"
  echo "$digest"
}

machine() {
  case $(uname -m) in
    x86_64) echo amd64 ;;
    aarch64) echo arm64 ;;
    *) uname -m ;;
  esac
}

# pack_image ROOT NAME ENTRYPOINT ARCHIVE: writes the archive and prints NAME@sha256:DIGEST.
pack_image() {
  local root=$1 name=$2 entrypoint=$3 archive=$4 layout layer size config config_size manifest manifest_size
  layout=$(mktemp -d "$archive.XXXXXX"); mkdir -p "$layout/blobs/sha256"
  pack --directory "$root" --file "$layout/layer" .
  size=$(stat -c %s "$layout/layer"); layer=$(add_blob "$layout" "$layout/layer")
  jq -cnj --arg arch "$(machine)" --arg entry "$entrypoint" --arg layer "sha256:$layer" '{
      architecture: $arch, os: "linux",
      config: {User: "65532:65532", Entrypoint: [$entry], Env: ["PATH=/usr/bin"], WorkingDir: "/"},
      rootfs: {type: "layers", diff_ids: [$layer]}}' >"$layout/config"
  config_size=$(stat -c %s "$layout/config"); config=$(add_blob "$layout" "$layout/config")
  jq -cnj --arg config "sha256:$config" --argjson config_size "$config_size" --arg layer "sha256:$layer" --argjson size "$size" '{
      schemaVersion: 2, mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: {mediaType: "application/vnd.oci.image.config.v1+json", digest: $config, size: $config_size},
      layers: [{mediaType: "application/vnd.oci.image.layer.v1.tar", digest: $layer, size: $size}]}' >"$layout/manifest"
  manifest_size=$(stat -c %s "$layout/manifest"); manifest=$(add_blob "$layout" "$layout/manifest")
  # containerd takes the name from this annotation as it stands.
  jq -cnj --arg digest "sha256:$manifest" --argjson size "$manifest_size" --arg name "$name:local" '{
      schemaVersion: 2, mediaType: "application/vnd.oci.image.index.v1+json",
      manifests: [{mediaType: "application/vnd.oci.image.manifest.v1+json", digest: $digest, size: $size,
        annotations: {"io.containerd.image.name": $name, "org.opencontainers.image.ref.name": $name}}]}' >"$layout/index.json"
  printf '{"imageLayoutVersion":"1.0.0"}' >"$layout/oci-layout"
  pack --directory "$layout" --file "$archive.new" oci-layout index.json blobs
  rm -rf "$layout"; mv "$archive.new" "$archive"
  echo "$name@sha256:$manifest"
}
