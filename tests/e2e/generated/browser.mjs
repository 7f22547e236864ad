// Serves the page from an origin of its own, has a browser load it, and prints what it tells.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { readFileSync } from "node:fs";

const [browser, folder, port, service, key] = process.argv.slice(2);
const page = `<!doctype html><title>A page</title><script type="module" src="/page.js"></script>`;
const script = readFileSync("made/page.js");
let child;

const server = createServer((request, response) => {
  const path = request.url.split("?")[0];
  if (path === "/told") {
    let told = "";
    request.on("data", (piece) => (told += piece));
    request.on("end", () => {
      console.log(told);
      child.kill("SIGKILL");
      process.exit(0);
    });
  } else if (path === "/page.js") {
    response.setHeader("content-type", "text/javascript");
    response.end(script);
  } else {
    response.setHeader("content-type", "text/html");
    response.end(page);
  }
});
server.listen(Number(port), "localhost", () => {
  const asked = new URLSearchParams({ service, key });
  const options = ["--headless", "--no-sandbox", "--disable-gpu", `--user-data-dir=${folder}`];
  child = spawn(browser, [...options, "--remote-debugging-port=0", `http://localhost:${port}/?${asked}`], { stdio: "ignore" });
});
setTimeout(() => {
  child.kill("SIGKILL");
  process.exit(1);
}, 50_000);
