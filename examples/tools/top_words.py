# The commonest words of a text.
import collections
import re

text = params["text"].casefold() if params["fold"] else params["text"]
words = collections.Counter(re.findall(r"\w+", text))
print(len(words), "different words")
return dict(words.most_common(params["n"]))
