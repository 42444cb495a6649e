# Evaluates the flake's outputs with stand-ins for nixpkgs and crane, whose functions return their arguments. It
# finds misspelt names, missing source files and outputs that went away; it builds nothing.
let
  lib = {
    genAttrs = names: f: builtins.listToAttrs (map (name: { inherit name; value = f name; }) names);
    importTOML = file: builtins.fromTOML (builtins.readFile file);
    licenses.asl20 = { };
    platforms.linux = [ ];
    fileset = {
      toSource = { root, fileset }: assert builtins.all builtins.pathExists fileset; root;
      unions = paths: paths;
    };
  };
  names = [
    "buildDepsOnly"
    "buildPackage"
    "cargoClippy"
    "cargoDeny"
    "cargoDoc"
    "cargoFmt"
    "cargoNextest"
    "devShell"
  ];
  craneLib =
    builtins.listToAttrs (
      map (name: {
        inherit name;
        value = arguments: { made = name; inherit arguments; };
      }) names
    )
    // {
      fileset.commonCargoSources = path: path;
    };
  systems = [
    "aarch64-linux"
    "x86_64-linux"
  ];
  pkgs = { inherit lib; nixfmt = { }; };
  outputs = (import ../../flake.nix).outputs {
    self = { };
    nixpkgs = {
      inherit lib;
      legacyPackages = lib.genAttrs systems (_: pkgs);
    };
    crane.mkLib = _: craneLib;
  };

  expect =
    output: wanted:
    assert builtins.attrNames outputs.${output} == systems;
    builtins.all (
      system:
      let
        found = builtins.attrNames outputs.${output}.${system};
      in
      if found == wanted then
        true
      else
        throw "${output}.${system} has ${builtins.toJSON found}, not ${builtins.toJSON wanted}"
    ) systems;
  # Forces what every derivation is given, except for the packages of nixpkgs.
  trawl = outputs.packages.x86_64-linux.trawl.arguments;
in
assert expect "packages" [ "default" "trawl" "trawlctl" ];
assert expect "checks" [ "clippy" "deny" "doc" "fmt" "nextest" "trawl" ];
assert expect "devShells" [ "default" ];
assert trawl.pname == "trawl" && builtins.isString trawl.version && builtins.pathExists trawl.src;
assert trawl.cargoArtifacts.made == "buildDepsOnly";
builtins.all (system: outputs.formatter.${system} == { }) systems
