import { serverExample } from "./server-example.js";

serverExample("express-auth.js");
serverExample("koa-auth.js");
