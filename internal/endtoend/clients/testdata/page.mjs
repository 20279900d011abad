// Opens the page at the URL process.argv[2] without a browser, clicks its button, and prints what the page shows.
const site = process.argv[2];
const load = async (path) => (await fetch(site + path)).text();
const asModule = (source) => "data:text/javascript," + encodeURIComponent(source);

const html = await load("/");
const [, script] = html.match(/<script type="module">(.*)<\/script>/s);
const button = { disabled: false };
const text = {
  set textContent(value) {
    console.log(JSON.stringify({ text: value, disabled: button.disabled }));
  },
};
globalThis.document = { querySelector: (name) => (name === "button" ? button : text) };
const real = globalThis.fetch;
globalThis.fetch = (path, options) => real(site + path, options);

const cooldown = asModule(await (await real(site + "/cooldown.js")).text());
await import(asModule(script.replace('"/cooldown.js"', JSON.stringify(cooldown))));
await button.onclick();
