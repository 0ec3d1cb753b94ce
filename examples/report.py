# A snippet: `params` is the input, what it prints is the output, `return` gives the result.
words = params["text"].split()
print(f"{len(words)} words, longest: {max(words, key=len)}")


def count(words):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return counts


return {"words": len(words), "counts": count(words)}
