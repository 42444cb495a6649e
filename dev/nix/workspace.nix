# The Rust workspace, built once: every check reuses the dependencies that the package compiled.
{
  pkgs,
  lib,
  craneLib,
}:
let
  # The tests read what is generated, the samples and what was promised; the rest of the tree would only cause
  # rebuilds.
  src = lib.fileset.toSource {
    root = ../../.;
    fileset = lib.fileset.unions [
      (craneLib.fileset.commonCargoSources ../../.)
      ../../clippy.toml
      ../../crates/trawl-api/tests/fixtures
      ../../crates/trawl-api/tests/golden
      ../../crates/trawl-filter/tests/data
      ../../crds
      ../../deny.toml
      ../../deploy/base/webhooks.yaml
      ../../deploy/samples
      ../../docs/api.md
      ../../docs/conditions.md
      ../../docs/refusals
      ../../rustfmt.toml
    ];
  };

  commonArgs = {
    pname = "trawl";
    version = (lib.importTOML ../../Cargo.toml).workspace.package.version;
    inherit src;
    strictDeps = true;

    # clang makes the bindings of libxdp and libbpf, and the BPF objects inside xsk-rs.
    nativeBuildInputs = with pkgs; [
      gnum4
      llvmPackages.clang-unwrapped
      pkg-config
      rustPlatform.bindgenHook
    ];
    buildInputs = with pkgs; [
      elfutils
      libpcap
      zlib
    ];
  };

  cargoArtifacts = craneLib.buildDepsOnly commonArgs;
  withDependencies = args: commonArgs // { inherit cargoArtifacts; } // args;

  trawl = craneLib.buildPackage (withDependencies {
    # The tests have a check of their own, below.
    doCheck = false;
    meta = {
      description = "Bounded, verified packet captures from a Kubernetes-managed network sensor";
      license = lib.licenses.asl20;
      platforms = lib.platforms.linux;
    };
  });
in
{
  inherit craneLib trawl;

  # The command line alone, for people's own machines: it needs none of the data plane's libraries.
  trawlctl = craneLib.buildPackage (withDependencies {
    pname = "trawlctl";
    cargoExtraArgs = "--locked --package trawlctl";
    doCheck = false;
    meta.mainProgram = "trawlctl";
  });

  checks = {
    inherit trawl;
    clippy = craneLib.cargoClippy (withDependencies {
      cargoClippyExtraArgs = "--all-targets -- --deny warnings";
    });
    fmt = craneLib.cargoFmt { inherit (commonArgs) pname version src; };
    # Unit tests only: packets, clusters and stores need privileges that a build sandbox does not give.
    nextest = craneLib.cargoNextest (withDependencies {
      cargoNextestExtraArgs = "--lib --bins";
    });
    doc = craneLib.cargoDoc (withDependencies { env.RUSTDOCFLAGS = "--deny warnings"; });
    deny = craneLib.cargoDeny { inherit (commonArgs) pname version src; };
  };
}
