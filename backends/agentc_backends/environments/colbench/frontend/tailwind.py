"""The stylesheet that ColBench's pages link: its name, and the hash by which programs know it."""

FILE = "tailwind.min.css"
SHA256 = "b6ad97402eddb903e7a5d7a73ee47a679204efbdda4521a391cbad9df509b932"
