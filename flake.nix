{
  description = "Trawl: bounded, verified packet captures from a Kubernetes-managed network sensor";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-26.05";
    crane.url = "github:ipetkov/crane";
  };

  outputs =
    {
      nixpkgs,
      crane,
      ...
    }:
    let
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      # One attribute set per system, each made from the same workspace.
      perSystem =
        select:
        nixpkgs.lib.genAttrs systems (
          system:
          let
            pkgs = nixpkgs.legacyPackages.${system};
          in
          select {
            inherit pkgs;
            workspace = import ./dev/nix/workspace.nix {
              inherit pkgs;
              inherit (pkgs) lib;
              craneLib = crane.mkLib pkgs;
            };
          }
        );
    in
    {
      packages = perSystem (
        { workspace, ... }:
        {
          inherit (workspace) trawl trawlctl;
          default = workspace.trawl;
        }
      );

      checks = perSystem ({ workspace, ... }: workspace.checks);

      apps = perSystem (
        { workspace, ... }:
        {
          trawlctl = {
            type = "app";
            program = "${workspace.trawlctl}/bin/trawlctl";
          };
        }
      );

      devShells = perSystem (
        { pkgs, workspace }:
        {
          default = workspace.craneLib.devShell {
            inherit (workspace) checks;
            packages = with pkgs; [
              cargo-deny
              cargo-nextest
              deadnix
              etcd
              ethtool
              iproute2
              jq
              kubectl
              kubernetes
              nixfmt
              shellcheck
              tcpdump
              wireshark-cli
            ];
          };
        }
      );

      formatter = perSystem ({ pkgs, ... }: pkgs.nixfmt);
    };
}
