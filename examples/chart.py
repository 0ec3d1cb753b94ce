# A chart with labels in Chinese, Japanese and Korean. No font is named: the sandbox brings what is needed.
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 4.5))
axes.bar(params["months"], params["sales"], color="#2a6f97")
axes.set_title("销售额 · 売上高 · 매출액")
axes.set_xlabel("月份 / 月 / 월")
axes.set_ylabel("万元")
for place, value in enumerate(params["sales"]):
    axes.annotate(f"{value}", (place, value), ha="center", va="bottom")
figure.savefig("chart.png", dpi=120)
print("chart.png is drawn")
return {"best": params["months"][params["sales"].index(max(params["sales"]))]}
