module trawl.cloud/dev/probe

go 1.26.0
