// A snippet: `params` is the input; `await` and `return` work at top level.
const { createHash } = await import("node:crypto");

const totals = {};
for (const { item, price, amount } of params.orders) {
  totals[item] = (totals[item] ?? 0) + price * amount;
}
console.log(`${params.orders.length} orders`);

return { totals, checksum: createHash("sha256").update(JSON.stringify(totals)).digest("hex").slice(0, 12) };
