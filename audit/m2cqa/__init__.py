"""M2CQA's construction (arXiv 2602.05437, Section 2 and Appendix A.2) as resumable steps over a folder of images."""
