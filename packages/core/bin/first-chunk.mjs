#!/usr/bin/env node
// Stands outside dist, so that a package manager can link the command before the first build.
import "../dist/cli/main.js";
