# More memory than the job has. How it ends is the kernel's word, not this program's.
held = []
for _ in range(params["mb"]):
    block = bytearray(1 << 20)
    for i in range(0, len(block), 4096):
        block[i] = 1
    held.append(block)
return [f"took {len(held)} MB"]
